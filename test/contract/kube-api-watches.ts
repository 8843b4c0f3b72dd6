// The contract of the Kubernetes API: watches, and a watcher of src/kube that uses them.
import { expect, test } from '@jest/globals'
import { applyStatus } from '../../src/kube/code-pool/apply.ts'
import { startKubeWatcher, WIDGETS_PATH } from '../kit/kube/kube-watcher.ts'
import { waitFor } from '../kit/wait-for.ts'
import { createPools, type OpenedKubeApi, statusOf } from './kube-api-use.ts'

/** Longer than any wait for an event: a watcher must not reconnect in the meantime. */
const IDLE_MS_MAX = 60_000
const { signal } = new AbortController()

/** Defines the tests of watches. */
export function defineWatches(opened: () => OpenedKubeApi): void {
  defineEvents(opened)
  defineBookmarks(opened)
  defineWatcher(opened)
}

function defineEvents(opened: () => OpenedKubeApi): void {
  test('a watch has each change in order, with the version of its response', async () => {
    const pools = await createPools(opened())
    const { metadata } = await pools.list()
    const watch = await pools.watch({ resourceVersion: metadata.resourceVersion })
    const created = await pools.create('p')
    const changed = await pools.change('p', { spec: { target: 6000 } })
    const applied = await applyStatus(pools.api, { pool: changed, status: statusOf({}), signal })
    await pools.remove('p')
    await waitFor('the changes', () => watch.events.length === 4)
    expect(watch.summary()).toEqual(['ADDED p', 'MODIFIED p', 'MODIFIED p', 'DELETED p'])
    const objects = watch.events.map(({ object }) => object)
    expect(objects.slice(0, 3)).toEqual([created, changed, applied])
    const versions = objects.map(({ metadata: { resourceVersion } }) => Number(resourceVersion))
    expect(versions).toEqual([...new Set(versions)].sort((one, other) => one - other))
    expect(objects[3]).toMatchObject({ spec: { target: 6000 }, status: statusOf({}) })
    await watch.stop()
    const { resourceVersion } = changed.metadata
    const resumed = await pools.watch({ resourceVersion })
    await waitFor('the later changes', () => resumed.events.length === 2)
    expect(resumed.events).toEqual(watch.events.slice(2))
    await resumed.stop()
  })

  test('an object enters and leaves a watch when its labels change', async () => {
    const pools = await createPools(opened())
    const { metadata } = await pools.list()
    const { resourceVersion } = metadata
    const watch = await pools.watch({ resourceVersion, labelSelector: 'team=x' })
    const label = (team: string | null) => pools.change('p', { metadata: { labels: { team } } })
    await pools.create('p')
    await label('x')
    await pools.change('p', { spec: { target: 6000 } })
    const removed = await label('y')
    await label(null)
    await pools.create('q', { team: 'x' })
    await waitFor('the last change', () => watch.summary().includes('ADDED q'))
    expect(watch.summary()).toEqual(['ADDED p', 'MODIFIED p', 'DELETED p', 'ADDED q'])
    const version = watch.events[2]?.object.metadata.resourceVersion
    expect(version).toBe(removed.metadata.resourceVersion)
    await watch.stop()
  })
}

function defineBookmarks(opened: () => OpenedKubeApi): void {
  test('a bookmark has the version from which a watch resumes', async () => {
    const pools = await createPools(opened())
    const { metadata } = await pools.list()
    const query = { labelSelector: 'team=x', allowWatchBookmarks: 'true' }
    const watch = await pools.watch({
      ...query,
      resourceVersion: metadata.resourceVersion,
      timeoutSeconds: '4', // a real server sends a bookmark 2 s before it closes the watch
    })
    const other = await pools.create('other')
    const isPast = (version: string) => Number(version) >= Number(other.metadata.resourceVersion)
    const bookmark = () =>
      watch.events.find(
        ({ type, object }) => type === 'BOOKMARK' && isPast(object.metadata.resourceVersion),
      )
    await waitFor('a bookmark', () => bookmark() !== undefined)
    await watch.stop()
    expect(watch.events.filter(({ type }) => type !== 'BOOKMARK')).toEqual([])
    await pools.create('p', { team: 'x' })
    const { resourceVersion = '' } = bookmark()?.object.metadata ?? {}
    const resumed = await pools.watch({ resourceVersion })
    await waitFor('the later change', () => resumed.events.length > 0)
    expect(resumed.summary()).toEqual(['ADDED p'])
    await resumed.stop()
  })

  test('a watch closes at its timeout, without bookmarks unless it requests them', async () => {
    const pools = await createPools(opened())
    const { resourceVersion } = (await pools.list()).metadata
    const watch = await pools.watch({ resourceVersion, timeoutSeconds: '1' })
    await pools.create('p')
    await watch.closed
    expect(watch.summary()).toEqual(['ADDED p'])
  })
}

function defineWatcher(opened: () => OpenedKubeApi): void {
  test('a watcher reports a missing kind, and lists it once it exists', async () => {
    const close = () => undefined
    const watcher = startKubeWatcher({ api: opened().api, close }, IDLE_MS_MAX)
    await waitFor('some failures', () => watcher.failures.length > 2)
    expect(watcher.failures.at(-1)?.status).toBe(404)
    expect(watcher.reflector.hasSynced()).toBe(false)
    await opened().serveWidgets()
    const body = { apiVersion: 'test.dev/v1', kind: 'Widget', metadata: { name: 'a' } }
    await opened().api.call({ method: 'POST', path: WIDGETS_PATH, body })
    await waitFor('the widget', () => watcher.cache.get('n/a') !== undefined)
    expect(watcher.failures.at(-1)).toBeUndefined()
    await watcher.stop()
  })
}
