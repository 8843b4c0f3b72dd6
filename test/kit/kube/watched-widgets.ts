// The set-up of tests that watch widgets: a fake API server for each test, operations on its
// widgets, and a watcher that stops after the test.
import { afterEach, beforeEach } from '@jest/globals'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { waitFor } from '../wait-for.ts'
import { type FakeKubeApi, startFakeKubeApi } from './fake-kube-api.ts'
import type { FakeObject } from './fake-kube-store.ts'
import { callFake, type KubeWatcher, startKubeWatcher, WIDGETS_PATH } from './kube-watcher.ts'

/** The widgets of the current test. */
export interface WatchedWidgets {
  /** The API server of the current test. */
  readonly fake: FakeKubeApi
  readonly create: (name: string) => FakeObject
  readonly change: (name: string, size: number) => FakeObject
  readonly remove: (name: string) => FakeObject
  /** Whether a widget of this name exists. */
  readonly has: (name: string) => boolean
  /** The existing widgets, as `name@version`. */
  readonly existing: () => string[]
  /** Starts the watcher of the current test. */
  readonly startWatcher: () => KubeWatcher
  /** Starts the watcher, and waits until it has listed and its watch is open. */
  readonly startSyncedWatcher: () => Promise<KubeWatcher>
  /** Waits until the cache of a watcher contains exactly the existing widgets. */
  readonly expectInSync: (watcher: KubeWatcher) => Promise<void>
  /** Faults, by name, after which a watch resumes without another list. */
  readonly faults: Readonly<Record<string, () => void>>
}

/** Starts an API server before each test; stops it and the watcher after the test. */
export function setUpWatchedWidgets(): WatchedWidgets {
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

  const versions = (objects: readonly KubeObject[]) =>
    objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort()
  const existing = () => versions(fake.store.list(WIDGETS_PATH))
  const startWatcher = () => (watcher = startKubeWatcher(callFake(fake)))
  return {
    get fake() {
      return fake
    },
    create: (name) => fake.store.create(WIDGETS_PATH, { metadata: { name }, spec: { size: 0 } }),
    change: (name, size) => fake.store.patch(WIDGETS_PATH, name, { spec: { size } }),
    remove: (name) => fake.store.remove(WIDGETS_PATH, name),
    has: (name) => fake.store.get(WIDGETS_PATH, name) !== undefined,
    existing,
    startWatcher,
    async startSyncedWatcher() {
      const started = startWatcher()
      const isSynced = () => started.reflector.hasSynced() && fake.watches.size === 1
      await waitFor('the first list and its watch', isSynced)
      return started
    },
    async expectInSync({ cache }) {
      const isSame = () => versions(cache.list()).join() === existing().join()
      await waitFor('the cache to contain the existing widgets', isSame)
    },
    faults: {
      'a half-open connection': () => {
        fake.watches.silence()
      },
      'destroyed connections': () => {
        fake.dropConnections()
      },
      'a watch that the server closes': () => {
        fake.watches.closeAll()
      },
      'a truncated event': () => {
        fake.watches.nextDelivery = 'truncated'
      },
      'a duplicate event': () => {
        fake.watches.nextDelivery = 'duplicate'
      },
    },
  }
}
