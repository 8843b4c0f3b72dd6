// A watcher of a fake API server misses no change despite the faults of the server.
import { describe, expect, test } from '@jest/globals'
import { type KubeWatcher, WIDGETS_PATH } from '../../kit/kube/kube-watcher.ts'
import { setUpWatchedWidgets } from '../../kit/kube/watched-widgets.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const widgets = setUpWatchedWidgets()
const { create, change, remove, startWatcher, startSyncedWatcher, expectInSync } = widgets

const types = (watcher: KubeWatcher) =>
  watcher.changes.map(({ type, object }) => `${type} ${object.metadata.name}`)

test('the watcher lists in pages, then watches, and drops managedFields', async () => {
  for (let i = 0; i < 1201; i++) create(`w${i}`)
  const watcher = await startSyncedWatcher()
  expect(watcher.cache.size()).toBe(1201)
  const lists = widgets.fake.calls.filter(({ query }) => !query.has('watch'))
  expect(lists.map(({ query }) => query.get('limit'))).toEqual(['500', '500', '500'])
  expect(watcher.cache.get('n/w7')?.metadata).not.toHaveProperty('managedFields')
  const watch = widgets.fake.calls.find(({ query }) => query.has('watch'))
  expect(watch?.query.get('allowWatchBookmarks')).toBe('true')
  expect(Number(watch?.query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300)
  expect(Number(watch?.query.get('timeoutSeconds'))).toBeLessThanOrEqual(600)
})

test('the watcher lists large objects in smaller pages', async () => {
  const spec = { large: 'x'.repeat(1024 * 1024) }
  for (let i = 0; i < 20; i++)
    widgets.fake.store.create(WIDGETS_PATH, { metadata: { name: `w${i}` }, spec })
  const watcher = await startSyncedWatcher()
  expect(watcher.cache.size()).toBe(20)
  expect(await watcher.lists()).toBe(1)
  const lists = widgets.fake.calls.filter(({ query }) => !query.has('watch'))
  expect(Number(lists.at(-1)?.query.get('limit'))).toBeLessThanOrEqual(8)
})

test('the watcher reports each added, changed and deleted object once', async () => {
  const watcher = await startSyncedWatcher()
  create('a')
  change('a', 1)
  remove('a')
  await waitFor('three changes', () => watcher.changes.length === 3)
  expect(types(watcher)).toEqual(['added a', 'changed a', 'deleted a'])
})

describe('the watcher resumes its watch without another list after', () => {
  const faults: readonly (readonly [string, () => void | Promise<void>])[] = [
    ...Object.entries(widgets.faults),
    [
      'a restart of the server',
      async () => {
        await widgets.fake.stop()
        setTimeout(() => void widgets.fake.start(), 200)
      },
    ],
  ]
  test.each(faults)('%s', async (_name, inject) => {
    create('a')
    const watcher = await startSyncedWatcher()
    await inject()
    change('a', 1)
    create('b')
    await expectInSync(watcher)
    expect(types(watcher)).toEqual(['added a', 'changed a', 'added b'])
    expect(await watcher.lists()).toBe(1)
  })

  test('a 429 response, whose Retry-After it respects', async () => {
    const watcher = await startSyncedWatcher()
    let rejected = 0
    widgets.fake.reject = () =>
      rejected++ < 2 ? { status: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 } : undefined
    const startedMs = performance.now()
    widgets.fake.dropConnections()
    create('a')
    await expectInSync(watcher)
    expect(performance.now() - startedMs).toBeGreaterThan(1900)
    expect(await watcher.lists()).toBe(1)
  })

  test('500 responses', async () => {
    const watcher = await startSyncedWatcher()
    let rejected = 0
    widgets.fake.reject = () =>
      rejected++ < 3 ? { status: 500, reason: 'InternalError' } : undefined
    widgets.fake.dropConnections()
    create('a')
    await expectInSync(watcher)
    expect(await watcher.lists()).toBe(1)
  })
})

describe('the watcher relists and reports the missed changes after', () => {
  test('a 410 event of its watch', async () => {
    create('a')
    create('b')
    const watcher = await startSyncedWatcher()
    widgets.fake.watches.silence()
    remove('a')
    change('b', 1)
    create('c')
    widgets.fake.expire()
    await expectInSync(watcher)
    expect(types(watcher).slice(2)).toEqual(['deleted a', 'changed b', 'added c'])
    expect(await watcher.lists()).toBe(2)
  })

  test('a 410 response to its watch', async () => {
    create('a')
    const watcher = await startSyncedWatcher()
    let rejected = 0
    widgets.fake.reject = ({ query }) =>
      query.has('watch') && rejected++ < 1 ? { status: 410, reason: 'Expired' } : undefined
    widgets.fake.dropConnections()
    remove('a')
    await expectInSync(watcher)
    expect(types(watcher)).toEqual(['added a', 'deleted a'])
    expect(await watcher.lists()).toBe(2)
  })

  test('a 410 response to a page', async () => {
    for (let i = 0; i < 700; i++) create(`w${i}`)
    let rejected = 0
    widgets.fake.reject = ({ query }) =>
      query.has('continue') && rejected++ < 1 ? { status: 410, reason: 'Expired' } : undefined
    const watcher = await startSyncedWatcher()
    expect(watcher.cache.size()).toBe(700)
    const lists = widgets.fake.calls.filter(({ query }) => !query.has('watch'))
    expect(lists.map(({ status }) => status)).toEqual([200, 410, 200, 200])
    expect(lists.every(({ query }) => query.get('limit') === '500')).toBe(true)
  })

  test('the replacement of an object by another of the same name', async () => {
    create('a')
    const watcher = await startSyncedWatcher()
    widgets.fake.watches.silence()
    remove('a')
    create('a')
    widgets.fake.expire()
    await expectInSync(watcher)
    expect(types(watcher)).toEqual(['added a', 'deleted a', 'added a'])
  })

  test('504 responses to a resourceVersion that the server does not have yet', async () => {
    const watcher = await startSyncedWatcher()
    widgets.fake.reject = ({ query }) =>
      Number(query.get('resourceVersion')) > 1 ? { status: 504, reason: 'Timeout' } : undefined
    create('a')
    await waitFor('the event', () => watcher.changes.length === 1)
    widgets.fake.dropConnections()
    await waitFor(
      'some rejections',
      () => widgets.fake.calls.filter((c) => c.status === 504).length > 3,
    )
    widgets.fake.reject = () => undefined
    create('b')
    await expectInSync(watcher)
  })
})

test('a watcher that stops during a list opens no watch', async () => {
  let release = (): void => undefined
  widgets.fake.holdLists = new Promise((resolve) => (release = resolve))
  const watcher = startWatcher()
  await waitFor('the list', () => widgets.fake.listsHeld === 1)
  const stopping = watcher.stop()
  release()
  await withinDeadline('the watcher to stop', stopping)
  expect(widgets.fake.calls.some(({ query }) => query.has('watch'))).toBe(false)
  expect(widgets.fake.watches.size).toBe(0)
})

test('the calls of a watcher share connections', async () => {
  const watcher = await startSyncedWatcher()
  for (let i = 0; i < 20; i++) {
    await waitFor('the watch', () => widgets.fake.watches.size === 1)
    widgets.fake.expire()
    await waitFor('a list', async () => (await watcher.lists()) === i + 2)
  }
  expect(new Set(widgets.fake.calls.map(({ port }) => port)).size).toBeLessThan(45)
})
