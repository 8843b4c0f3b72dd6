// The controller of CodePools: watches them and their Jobs in each namespace, and reconciles while
// it leads. Reads go on without leading, so that whoever takes over knows all at once.
import { within } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { KubeApi } from '../api.ts'
import type { EventRecorder } from '../events.ts'
import { KubeError } from '../kube-error.ts'
import { createObjectCache, type Change, type ObjectCache } from '../object-cache.ts'
import { type KubeObject, keyOf } from '../objects.ts'
import { createReflector, type Reflector } from '../reflector.ts'
import { runWorkers } from '../run-workers.ts'
import { endsWithin, type Scheduler, untilAborted } from '../scheduler.ts'
import { createWorkQueue, type WorkQueue } from '../work-queue.ts'
import { CODE_POOLS, type CodePool } from './code-pool.ts'
import { storeNameOf } from './observe.ts'
import { createReconcile, type ReconcileDeps } from './reconcile.ts'
import { JOB_SELECTOR, JOBS, poolUidOf, type RefillJob, trimJob } from './refill-jobs.ts'

/** What the controller works with. */
export interface PoolControllerDeps extends Omit<ReconcileDeps, 'poolsIn' | 'jobsIn' | 'pools'> {
  readonly api: KubeApi
  readonly namespaces: readonly string[]
  readonly events: EventRecorder
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly metrics: Metrics
  readonly log: Log
  /** Told how each kind of objects is being read. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The controller. */
export interface PoolController {
  /** Reads until `signal` aborts. Rejects by a defect alone. */
  readonly watch: (signal: AbortSignal) => Promise<void>
  /** Whether every kind has been read once in each namespace. */
  readonly hasSynced: () => boolean
  /** Reconciles everything, and then whatever changes, until `signal` aborts. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /** Pools of the store changed. */
  readonly notice: (pools: readonly string[] | 'all') => void
  /** Brings metrics that follow no event up to date. */
  readonly show: () => void
  /** Whether a reconcile or a watch hangs, by a defect: only a new start helps then. */
  readonly isStuck: () => boolean
}

const NAME = 'codepool'
const WORKERS = 4
/** What was missed in a way that nobody thought of is looked at again at last. */
const RESYNC_MS = 10 * 3600_000
/** A reconcile is told to end after 60 s; one that is still there after so long hangs. */
const RECONCILE_MS_MAX = 120_000
/** How long reconciles under way may still take at the end, and then once they are hurried. */
const DRAIN_MS_MAX = 1000
const HURRY_MS_MAX = 1000
const FLUSH_MS_MAX = 500

interface Watched {
  readonly pools: ObjectCache<CodePool>
  readonly jobs: ObjectCache<RefillJob>
  readonly reflectors: readonly Reflector[]
}

/** Makes the controller; it does nothing yet. */
export function createPoolController(deps: PoolControllerDeps): PoolController {
  const { namespaces, scheduler, metrics } = deps
  const queue = createWorkQueue({ name: NAME, scheduler, metrics })
  let isLeading = false
  const add = (key: string) => {
    if (isLeading) queue.add(key)
  }
  const byStoreName = (name: string) =>
    [...watched.values()].flatMap(({ pools }) => pools.listBy(name))
  const addAll = () => {
    for (const { pools } of watched.values()) for (const pool of pools.list()) add(keyOf(pool))
  }
  const watched = new Map<string, Watched>(
    namespaces.map((namespace) => [
      namespace,
      watchNamespace(deps, namespace, {
        onPool: (change) => {
          if (!asksForLook(change)) return
          add(keyOf(change.object))
          const others = change.type === 'changed' ? [] : byStoreName(storeNameOf(change.object))
          for (const other of others) add(keyOf(other))
        },
        onJob: ({ object }) => {
          const owner = object.metadata.ownerReferences?.find(({ controller }) => controller)
          if (owner !== undefined) add(`${namespace}/${owner.name}`)
        },
      }),
    ]),
  )
  const reconcile = createReconcile({
    ...deps,
    pools: { listBy: byStoreName },
    poolsIn: (namespace) => watched.get(namespace)?.pools,
    jobsIn: (namespace) => watched.get(namespace)?.jobs,
  })
  const reflectors = [...watched.values()].flatMap((one) => one.reflectors)
  return {
    async watch(signal) {
      await Promise.all(reflectors.map((reflector) => reflector.run(signal)))
    },
    hasSynced: () => reflectors.every((reflector) => reflector.hasSynced()),
    async lead(signal) {
      // Before the first read every pool would be reported as without a store.
      await Promise.race([deps.levels.settled, untilAborted(signal)])
      isLeading = !signal.aborted
      addAll()
      const end = () => {
        isLeading = false
        queue.end()
      }
      await leadUntil(signal, { deps, queue, reconcile, end })
    },
    notice(pools) {
      if (pools === 'all') addAll()
      else for (const name of pools) for (const pool of byStoreName(name)) add(keyOf(pool))
    },
    show() {
      queue.show()
      const all = [...watched.values()].flatMap(({ pools }) => pools.list())
      showConditions(metrics, all)
    },
    isStuck: () => queue.longestMs() > RECONCILE_MS_MAX || reflectors.some((one) => one.isStuck()),
  }
}

function showConditions({ poolConditions }: Metrics, pools: readonly CodePool[]): void {
  poolConditions.reset()
  for (const { type, status, reason } of pools.flatMap((pool) => pool.status?.conditions ?? []))
    poolConditions.inc({ type, status, reason })
}

/**
 * Has workers reconcile until `signal` aborts; then lets them end, hurried after a while, and left
 * behind after another: whoever leads no more is refused every write.
 */
async function leadUntil(
  signal: AbortSignal,
  given: {
    deps: PoolControllerDeps
    queue: WorkQueue
    reconcile: ReturnType<typeof createReconcile>
    end: () => void
  },
): Promise<void> {
  const { deps, queue, reconcile, end } = given
  const hurry = new AbortController()
  const working = runWorkers(
    {
      ...deps,
      name: NAME,
      queue,
      workers: WORKERS,
      async reconcile(key, ending) {
        const { requeueAfterMs } = await reconcile(key, ending)
        return { requeueAfterMs: requeueAfterMs ?? RESYNC_MS * (1 + deps.random() / 10) }
      },
      isFault: (error) => error instanceof KubeError || error instanceof StoreError,
    },
    hurry.signal,
  )
  await untilAborted(signal)
  end()
  if (!(await endsWithin(deps.scheduler, DRAIN_MS_MAX, working))) {
    hurry.abort()
    if (!(await endsWithin(deps.scheduler, HURRY_MS_MAX, working)))
      deps.log.warn('reconciles did not end: they are left behind')
  }
  const unsent = () => new Error('events took too long to send')
  await within(FLUSH_MS_MAX, deps.events.flush(), unsent).catch((err: unknown) => {
    deps.log.warn({ err }, 'events were not sent at the end')
  })
}

/** Whether a change asks for a look: our own writing of a status does not. */
function asksForLook({ type, object, before }: Change<CodePool>): boolean {
  if (type !== 'changed' || before === undefined) return true
  const of = ({ metadata }: CodePool) =>
    JSON.stringify([metadata.generation, metadata.deletionTimestamp, metadata.annotations])
  return of(object) !== of(before)
}

function watchNamespace(
  deps: PoolControllerDeps,
  namespace: string,
  on: {
    onPool: (change: Change<CodePool>) => void
    onJob: (change: Change<RefillJob>) => void
  },
): Watched {
  const { onState, ...given } = deps
  const pools = createObjectCache<CodePool>({ onChange: on.onPool, indexBy: storeNameOf })
  const jobs = createObjectCache<RefillJob>({ onChange: on.onJob, indexBy: poolUidOf })
  const reflect = <T extends KubeObject>(
    resource: Parameters<typeof createReflector>[0]['resource'],
    of: { cache: ObjectCache<T>; trim: (object: KubeObject) => T; labelSelector?: string },
  ) =>
    createReflector<T>({
      ...given,
      ...of,
      resource,
      namespace,
      onState: (failure) => {
        onState(resource.plural, failure)
      },
    })
  return {
    pools,
    jobs,
    reflectors: [
      // The API server has checked them by the definition that the type was made from.
      reflect(CODE_POOLS, { cache: pools, trim: (object) => object as CodePool }),
      reflect(JOBS, { cache: jobs, trim: trimJob, labelSelector: JOB_SELECTOR }),
    ],
  }
}
