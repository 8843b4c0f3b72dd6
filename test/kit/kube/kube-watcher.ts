// A reflector of one collection of the fake API server, with short retry delays, and a record of
// its events.
import { createKubeApi, type KubeApi } from '../../../src/kube/api.ts'
import type { KubeError } from '../../../src/kube/kube-error.ts'
import { type Change, createObjectCache, type ObjectCache } from '../../../src/kube/object-cache.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { createReflector, type Reflector } from '../../../src/kube/reflector.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import { createTransport } from '../../../src/kube/transport.ts'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'
import { waitFor } from '../wait-for.ts'
import type { FakeKubeApi } from './fake-kube-api.ts'

/** The collection that is watched. */
const WIDGETS = { group: 'test.dev', version: 'v1', plural: 'widgets' } as const
/** Its path. */
export const WIDGETS_PATH = '/apis/test.dev/v1/namespaces/n/widgets'

/** A log that writes nothing. */
export const quietLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** A reflector at work. */
export interface KubeWatcher {
  readonly cache: ObjectCache<KubeObject>
  readonly changes: Change<KubeObject>[]
  readonly failures: (KubeError | undefined)[]
  readonly reflector: Reflector
  readonly lists: () => Promise<number>
  /** Ends it; resolves when it has. */
  readonly stop: () => Promise<void>
}

/** Calls to the fake, over connections of their own. */
export function callFake(
  fake: FakeKubeApi,
  metrics: Metrics = createMetrics(),
): { api: KubeApi; close: () => void } {
  const transport = createTransport({
    namespace: 'n',
    read: () => Promise.resolve({ server: fake.url, headers: {}, tls: {} }),
    invalidate: () => undefined,
  })
  const api = createKubeApi({ transport, scheduler: systemScheduler, metrics })
  return { api, close: transport.close }
}

/** Silence after which a watch counts as dead here. */
const IDLE_MS = 600

/** Starts to watch. */
export function startKubeWatcher(fake: FakeKubeApi): KubeWatcher {
  const { api, close } = callFake(fake)
  const changes: Change<KubeObject>[] = []
  const failures: (KubeError | undefined)[] = []
  const metrics = createMetrics()
  const cache = createObjectCache<KubeObject>({
    onChange: (change) => changes.push(change),
  })
  const ending = new AbortController()
  const reflector = createReflector({
    api,
    resource: WIDGETS,
    namespace: 'n',
    cache,
    trim: (object) => object,
    scheduler: systemScheduler,
    random: Math.random,
    metrics,
    log: quietLog,
    onState: (failure) => failures.push(failure),
    idleMsMax: IDLE_MS,
    backOff: { initialMs: 5, maxMs: 50, resetAfterMs: 1000 },
  })
  const running = reflector.run(ending.signal)
  return {
    cache,
    changes,
    failures,
    reflector,
    async lists() {
      const shown = await metrics.registry.getSingleMetric('curtail_kube_lists_total')?.get()
      return shown?.values[0]?.value ?? 0
    },
    async stop() {
      ending.abort()
      await running
      close()
    },
  }
}

/** Operations of tests on the widgets of the current fake API server. */
export function watchedWidgets(fakeNow: () => FakeKubeApi) {
  const versions = (objects: readonly KubeObject[]) =>
    objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort()
  /** What there is, as `name@version`. */
  const there = () => versions(fakeNow().store.list(WIDGETS_PATH))
  return {
    there,
    make: (name: string) =>
      fakeNow().store.create(WIDGETS_PATH, { metadata: { name }, spec: { size: 0 } }),
    change: (name: string, size: number) =>
      fakeNow().store.patch(WIDGETS_PATH, name, { spec: { size } }),
    remove: (name: string) => fakeNow().store.remove(WIDGETS_PATH, name),
    /** Waits until a watcher's cache has exactly the existing objects. */
    agrees: async (of: KubeWatcher) => {
      const isSame = () => versions(of.cache.list()).join() === there().join()
      await waitFor('the cache to agree', isSame)
    },
  }
}
