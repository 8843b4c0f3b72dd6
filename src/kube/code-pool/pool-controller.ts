// The controller of CodePools: watches CodePools and Jobs in each namespace, and reconciles while
// leading. It also watches while not leading, so that a new leader starts with full caches.
import { within } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { KubeApi } from '../api.ts'
import type { EventRecorder } from '../events.ts'
import { KubeError } from '../kube-error.ts'
import { createObjectCache, type Change, type ObjectCache } from '../object-cache.ts'
import { controllerOf, type KubeObject, keyOf } from '../objects.ts'
import { createReflector, type Reflector } from '../reflector.ts'
import { runWorkers } from '../run-workers.ts'
import { completesWithin, type Scheduler, untilAborted } from '../scheduler.ts'
import { createWorkQueue, type WorkQueue } from '../work-queue.ts'
import { CODE_POOLS, type CodePool } from './code-pool.ts'
import { storeNameOf } from './observe.ts'
import { createReconcile, type ReconcileDeps } from './reconcile.ts'
import { JOB_SELECTOR, JOBS, poolUidOf, type RefillJob, trimJob } from './refill-jobs.ts'

/** Dependencies of the controller. */
export interface PoolControllerDeps extends Omit<ReconcileDeps, 'poolsIn' | 'jobsIn' | 'pools'> {
  readonly api: KubeApi
  readonly namespaces: readonly string[]
  readonly events: EventRecorder
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly metrics: Metrics
  readonly log: Log
  /** Called after each list and each opened watch of a namespace, and with each `failure`. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The controller. */
export interface PoolController {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly watch: (signal: AbortSignal) => Promise<void>
  /** Whether every resource has been listed at least once in each namespace. */
  readonly hasSynced: () => boolean
  /** Reconciles all CodePools, then those that change, until `signal` aborts. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /** Reconciles the CodePools of pools that changed in the store. */
  readonly onPoolsChanged: (pools: readonly string[] | 'all') => void
  /** Updates the metrics that are sampled: unfinished work and conditions. */
  readonly updateMetrics: () => void
  /** Whether a reconcile or a watch hangs: only a restart helps. */
  readonly isStuck: () => boolean
}

/** The name of the controller and of its queue in metrics. */
const NAME = 'codepool'
const WORKERS = 4
/** Periodic reconcile of every CodePool, as a safety net for missed changes. */
const RESYNC_MS = 10 * 3600_000
/** A reconcile is aborted after 60 s; one that runs for this time counts as stuck. */
const STUCK_RECONCILE_MS = 120_000
/** On stop: time for running reconciles, then for aborted ones, then for pending events. */
const DRAIN_MS_MAX = 1000
const ABORT_MS_MAX = 1000
const FLUSH_MS_MAX = 500

interface Watched {
  readonly pools: ObjectCache<CodePool>
  readonly jobs: ObjectCache<RefillJob>
  readonly reflectors: readonly Reflector[]
}

/** Creates the controller; it is not started. */
export function createPoolController(deps: PoolControllerDeps): PoolController {
  const { namespaces, scheduler, metrics } = deps
  const queue = createWorkQueue({ name: NAME, scheduler, metrics })
  let isLeading = false
  const add = (key: string) => {
    if (isLeading) queue.add(key)
  }
  const poolsOf = (name: string) => [...watched.values()].flatMap(({ pools }) => pools.listBy(name))
  const addAll = () => {
    for (const { pools } of watched.values()) for (const pool of pools.list()) add(keyOf(pool))
  }
  const watched = new Map<string, Watched>(
    namespaces.map((namespace) => [
      namespace,
      watchNamespace(deps, namespace, {
        onPool: (change) => {
          if (!needsReconcile(change)) return
          const others = change.type === 'changed' ? [] : poolsOf(storeNameOf(change.object))
          for (const key of new Set([change.object, ...others].map(keyOf))) add(key)
        },
        onJob: ({ object }) => {
          const owner = controllerOf(object)
          if (owner !== undefined) add(`${namespace}/${owner.name}`)
        },
      }),
    ]),
  )
  const reconcile = createReconcile({
    ...deps,
    pools: { listBy: poolsOf },
    poolsIn: (namespace) => watched.get(namespace)?.pools,
    jobsIn: (namespace) => watched.get(namespace)?.jobs,
  })
  const reflectors = [...watched.values()].flatMap((namespace) => namespace.reflectors)
  return {
    async watch(signal) {
      await Promise.all(reflectors.map((reflector) => reflector.run(signal)))
    },
    hasSynced: () => reflectors.every((reflector) => reflector.hasSynced()),
    async lead(signal) {
      // Before the first read of the levels, every CodePool would report an unavailable store.
      await Promise.race([deps.levels.firstRead, untilAborted(signal)])
      isLeading = !signal.aborted
      addAll()
      const stop = () => {
        isLeading = false
        queue.shutDown()
      }
      await leadUntil(signal, { deps, queue, reconcile, stop })
    },
    onPoolsChanged(pools) {
      if (pools === 'all') addAll()
      else for (const name of pools) for (const pool of poolsOf(name)) add(keyOf(pool))
    },
    updateMetrics() {
      queue.updateMetrics()
      const all = [...watched.values()].flatMap(({ pools }) => pools.list())
      countConditions(metrics, all)
    },
    isStuck: () =>
      queue.longestMs() > STUCK_RECONCILE_MS || reflectors.some((reflector) => reflector.isStuck()),
  }
}

function countConditions({ poolConditions }: Metrics, pools: readonly CodePool[]): void {
  poolConditions.reset()
  for (const { type, status, reason } of pools.flatMap((pool) => pool.status?.conditions ?? []))
    poolConditions.inc({ type, status, reason })
}

/**
 * Runs workers until `signal` aborts, then drains them: aborts their reconciles after DRAIN_MS_MAX,
 * and stops waiting after ABORT_MS_MAX more. Once leadership is lost, the fence rejects writes.
 */
async function leadUntil(
  signal: AbortSignal,
  input: {
    deps: PoolControllerDeps
    queue: WorkQueue
    reconcile: ReturnType<typeof createReconcile>
    stop: () => void
  },
): Promise<void> {
  const { deps, queue, reconcile, stop } = input
  const aborting = new AbortController()
  const working = runWorkers(
    {
      ...deps,
      name: NAME,
      queue,
      workers: WORKERS,
      async reconcile(key, deadline) {
        const { requeueAfterMs } = await reconcile(key, deadline)
        return { requeueAfterMs: requeueAfterMs ?? RESYNC_MS * (1 + deps.random() / 10) }
      },
      isOperationalError: (error) => error instanceof KubeError || error instanceof StoreError,
    },
    aborting.signal,
  )
  await untilAborted(signal)
  stop()
  if (!(await completesWithin(deps.scheduler, DRAIN_MS_MAX, working))) {
    aborting.abort()
    if (!(await completesWithin(deps.scheduler, ABORT_MS_MAX, working)))
      deps.log.warn("reconciles still running at the stop's deadline: abandoned")
  }
  const unsent = () => new Error('events not written within the deadline')
  await within(FLUSH_MS_MAX, deps.events.flush(), unsent).catch((err: unknown) => {
    deps.log.warn({ err }, 'events not written before the stop')
  })
}

/** Whether a change requires a reconcile; an update of only the status does not. */
function needsReconcile({ type, object, before }: Change<CodePool>): boolean {
  if (type !== 'changed' || before === undefined) return true
  const reconciledFieldsOf = ({ metadata }: CodePool) =>
    JSON.stringify([metadata.generation, metadata.deletionTimestamp, metadata.annotations])
  return reconciledFieldsOf(object) !== reconciledFieldsOf(before)
}

function watchNamespace(
  deps: PoolControllerDeps,
  namespace: string,
  on: {
    onPool: (change: Change<CodePool>) => void
    onJob: (change: Change<RefillJob>) => void
  },
): Watched {
  const { onState, ...reflectorDeps } = deps
  const pools = createObjectCache<CodePool>({ onChange: on.onPool, indexBy: storeNameOf })
  const jobs = createObjectCache<RefillJob>({ onChange: on.onJob, indexBy: poolUidOf })
  const reflect = <T extends KubeObject>(
    resource: Parameters<typeof createReflector>[0]['resource'],
    options: { cache: ObjectCache<T>; trim: (object: KubeObject) => T; labelSelector?: string },
  ) =>
    createReflector<T>({
      ...reflectorDeps,
      ...options,
      resource,
      namespace,
      onState: (failure) => {
        onState(`${resource.plural} in ${namespace}`, failure)
      },
    })
  return {
    pools,
    jobs,
    reflectors: [
      // The API server validates CodePools against the CRD that the type is generated from.
      reflect(CODE_POOLS, { cache: pools, trim: (object) => object as CodePool }),
      reflect(JOBS, { cache: jobs, trim: trimJob, labelSelector: JOB_SELECTOR }),
    ],
  }
}
