// A reflector of one collection of an API server, with short retry delays, and a record of the
// changes and failures that it reports.
import { createKubeApi, type KubeApi } from '../../../src/kube/api.ts'
import type { KubeError } from '../../../src/kube/kube-error.ts'
import { type Change, createObjectCache, type ObjectCache } from '../../../src/kube/object-cache.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { createReflector, type Reflector } from '../../../src/kube/reflector.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import { createTransport } from '../../../src/kube/transport.ts'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'
import type { FakeKubeApi } from './fake-kube-api.ts'

/** The watched kind. */
export const WIDGETS = { group: 'test.dev', version: 'v1', plural: 'widgets' } as const
/** The path of the watched collection. */
export const WIDGETS_PATH = '/apis/test.dev/v1/namespaces/n/widgets'

/** A log that writes nothing. */
export const quietLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** A running reflector. */
export interface KubeWatcher {
  readonly cache: ObjectCache<KubeObject>
  readonly changes: Change<KubeObject>[]
  readonly failures: (KubeError | undefined)[]
  readonly reflector: Reflector
  /** The number of lists so far. */
  readonly lists: () => Promise<number>
  /** Stops the reflector; resolves once it has stopped. */
  readonly stop: () => Promise<void>
}

/** A client of the fake API server, with its own connections. */
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

/** The time without an event or bookmark after which a watch is considered dead. */
const IDLE_MS = 600

/** Starts a reflector of the widgets; its `stop` calls `close`. */
export function startKubeWatcher(
  { api, close }: { readonly api: KubeApi; readonly close: () => void },
  idleMsMax = IDLE_MS,
): KubeWatcher {
  const changes: Change<KubeObject>[] = []
  const failures: (KubeError | undefined)[] = []
  const metrics = createMetrics()
  const cache = createObjectCache<KubeObject>({
    onChange: (change) => changes.push(change),
  })
  const stopping = new AbortController()
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
    idleMsMax,
    backOff: { initialMs: 5, maxMs: 50, resetAfterMs: 1000 },
  })
  const running = reflector.run(stopping.signal)
  return {
    cache,
    changes,
    failures,
    reflector,
    async lists() {
      const metric = await metrics.registry.getSingleMetric('curtail_kube_lists_total')?.get()
      return metric?.values[0]?.value ?? 0
    },
    async stop() {
      stopping.abort()
      await running
      close()
    },
  }
}
