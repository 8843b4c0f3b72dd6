// A watcher of an API server that fails in every known way misses no change.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import { type KubeWatcher, startKubeWatcher, watchedWidgets } from '../../kit/kube/kube-watcher.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

let fake: FakeKubeApi
let watcher: KubeWatcher | undefined

beforeEach(async () => {
  fake = await startFakeKubeApi()
})
afterEach(async () => {
  fake.reject = () => undefined
  await watcher?.stop()
  watcher = undefined
  await fake.stop()
})

const { make, change, remove, agrees } = watchedWidgets(() => fake)
const started = async () => {
  watcher = startKubeWatcher(fake)
  const of = watcher
  await waitFor('the first list', () => of.reflector.hasSynced() && fake.watches === 1)
  return of
}

const types = (of: KubeWatcher) =>
  of.changes.map(({ type, object }) => `${type} ${object.metadata.name}`)

test('it lists in pages, then watches, and drops managedFields', async () => {
  for (let i = 0; i < 1201; i++) make(`w${i}`)
  const of = await started()
  expect(of.cache.size()).toBe(1201)
  const lists = fake.calls.filter(({ query }) => !query.has('watch'))
  expect(lists.map(({ query }) => query.get('limit'))).toEqual(['500', '500', '500'])
  expect(of.cache.get('n/w7')?.metadata).not.toHaveProperty('managedFields')
  const watch = fake.calls.find(({ query }) => query.has('watch'))
  expect(watch?.query.get('allowWatchBookmarks')).toBe('true')
  expect(Number(watch?.query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300)
  expect(Number(watch?.query.get('timeoutSeconds'))).toBeLessThanOrEqual(600)
})

test('it reports each added, changed and deleted object once', async () => {
  const of = await started()
  make('a')
  change('a', 1)
  remove('a')
  await waitFor('three changes', () => of.changes.length === 3)
  expect(types(of)).toEqual(['added a', 'changed a', 'deleted a'])
})

describe('after a fault it resumes the watch without another list', () => {
  const faults: readonly (readonly [string, () => void | Promise<void>])[] = [
    [
      'a half-open connection',
      () => {
        fake.silence()
      },
    ],
    [
      'connections that are destroyed',
      () => {
        fake.dropConnections()
      },
    ],
    [
      'a watch that the server closes',
      () => {
        fake.endWatches()
      },
    ],
    [
      'a truncated line',
      () => {
        fake.nextEvent = 'truncated'
      },
    ],
    [
      'an event sent twice',
      () => {
        fake.nextEvent = 'twice'
      },
    ],
    [
      'a server that restarts',
      async () => {
        await fake.stop()
        setTimeout(() => void fake.start(), 200)
      },
    ],
  ]
  test.each(faults)('%s', async (_name, inject) => {
    make('a')
    const of = await started()
    await inject()
    change('a', 1)
    make('b')
    await agrees(of)
    expect(types(of)).toEqual(['added a', 'changed a', 'added b'])
    expect(await of.lists()).toBe(1)
  })

  test('429, whose Retry-After it respects', async () => {
    const of = await started()
    let rejected = 0
    fake.reject = () =>
      rejected++ < 2 ? { status: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 } : undefined
    const startedMs = performance.now()
    fake.dropConnections()
    make('a')
    await agrees(of)
    expect(performance.now() - startedMs).toBeGreaterThan(1900)
    expect(await of.lists()).toBe(1)
  })

  test('500', async () => {
    const of = await started()
    let rejected = 0
    fake.reject = () => (rejected++ < 3 ? { status: 500, reason: 'InternalError' } : undefined)
    fake.dropConnections()
    make('a')
    await agrees(of)
    expect(await of.lists()).toBe(1)
  })
})

describe('after its resourceVersion expired it relists and reports the missed changes', () => {
  test('410 within the watch', async () => {
    make('a')
    make('b')
    const of = await started()
    fake.silence()
    remove('a')
    change('b', 1)
    make('c')
    fake.expire()
    await agrees(of)
    expect(types(of).slice(2)).toEqual(['deleted a', 'changed b', 'added c'])
    expect(await of.lists()).toBe(2)
  })

  test('410 as the response to the watch', async () => {
    make('a')
    const of = await started()
    let rejected = 0
    fake.reject = ({ query }) =>
      query.has('watch') && rejected++ < 1 ? { status: 410, reason: 'Expired' } : undefined
    fake.dropConnections()
    remove('a')
    await agrees(of)
    expect(types(of)).toEqual(['added a', 'deleted a'])
    expect(await of.lists()).toBe(2)
  })

  test('410 between two pages', async () => {
    for (let i = 0; i < 700; i++) make(`w${i}`)
    let rejected = 0
    fake.reject = ({ query }) =>
      query.has('continue') && rejected++ < 1 ? { status: 410, reason: 'Expired' } : undefined
    const of = await started()
    expect(of.cache.size()).toBe(700)
    expect(rejected).toBe(1)
  })

  test('an object deleted and recreated meanwhile is a different object', async () => {
    make('a')
    const of = await started()
    fake.silence()
    remove('a')
    make('a')
    fake.expire()
    await agrees(of)
    expect(types(of)).toEqual(['added a', 'deleted a', 'added a'])
  })

  test('a resourceVersion later than that of the server', async () => {
    const of = await started()
    fake.reject = ({ query }) =>
      Number(query.get('resourceVersion')) > 1 ? { status: 504, reason: 'Timeout' } : undefined
    make('a')
    await waitFor('the event', () => of.changes.length === 1)
    fake.dropConnections()
    await waitFor('some rejections', () => fake.calls.filter((c) => c.status === 504).length > 3)
    fake.reject = () => undefined
    make('b')
    await agrees(of)
  })
})

test('it waits for a missing kind, and reports it', async () => {
  fake.reject = () => ({ status: 404, reason: 'NotFound' })
  const of = (watcher = startKubeWatcher(fake))
  await waitFor('a failure', () => of.failures.length > 2)
  expect(of.failures.at(-1)?.status).toBe(404)
  expect(of.reflector.hasSynced()).toBe(false)
  fake.reject = () => undefined
  make('a')
  await agrees(of)
  expect(of.failures.at(-1)).toBeUndefined()
})

test('a watcher stopped during a list opens no watch', async () => {
  let release = (): void => undefined
  fake.holdLists = new Promise((resolve) => (release = resolve))
  const of = (watcher = startKubeWatcher(fake))
  await waitFor('the list', () => fake.listsHeld === 1)
  const stopping = of.stop()
  release()
  await withinDeadline('the watcher to stop', stopping)
  expect(fake.calls.some(({ query }) => query.has('watch'))).toBe(false)
  expect(fake.watches).toBe(0)
})

test('calls share connections', async () => {
  const of = await started()
  for (let i = 0; i < 20; i++) {
    await waitFor('the watch', () => fake.watches === 1)
    fake.expire()
    await waitFor('a list', async () => (await of.lists()) === i + 2)
  }
  expect(new Set(fake.calls.map(({ port }) => port)).size).toBeLessThan(45)
})
