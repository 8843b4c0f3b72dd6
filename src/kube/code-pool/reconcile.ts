// Reconciles one CodePool, to keep it above its low-water mark: observe, plan, apply, report.
import { planRefillJob } from '../../codes/plan-refill-job.ts'
import type { ObservedPool, RefillPlan, ObservedStore } from '../../codes/observed-state.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { EventRecorder } from '../events.ts'
import { hasStatus, KubeError } from '../kube-error.ts'
import type { ObjectCache } from '../object-cache.ts'
import { keyOf, splitKey } from '../objects.ts'
import type { ReconcileResult } from '../run-workers.ts'
import { isSameStatus } from '../status.ts'
import { type ApplyDeps, applyStatus, applyStep } from './apply.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'
import type { Levels } from './levels.ts'
import { observe, type ObserveDeps, ownerOf, storeNameOf } from './observe.ts'
import { type RefillJob, isProblem } from './refill-jobs.ts'
import { renderStatus } from './render-status.ts'
import { emitEvents } from './emit-events.ts'

/** Dependencies of a reconcile. */
export interface ReconcileDeps extends ApplyDeps, Omit<ObserveDeps, 'jobs'> {
  readonly poolsIn: (namespace: string) => Pick<ObjectCache<CodePool>, 'get' | 'put'> | undefined
  readonly jobsIn: (namespace: string) => Pick<ObjectCache<RefillJob>, 'listBy'> | undefined
  readonly levels: Levels
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'refillJobs'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** Delay of the reconcile after a conflict or a failed step, until the caches have the change. */
const CONFLICT_RETRY_MS = 200
/** Minimum delay of the next reconcile after an old Job could not be deleted. */
const REMOVAL_RETRY_MS = 15_000

/** Creates a function that reconciles a key. It throws KubeError and StoreError. */
export function createReconcile(deps: ReconcileDeps) {
  return async (key: string, signal: AbortSignal): Promise<ReconcileResult> => {
    const { namespace } = splitKey(key)
    const pool = deps.poolsIn(namespace)?.get(key)
    const jobs = deps.jobsIn(namespace)
    // Deleted: its Jobs are garbage collected; nothing in the store belongs to it alone.
    if (pool === undefined || jobs === undefined) return {}
    if (pool.metadata.deletionTimestamp !== undefined) return {}
    const { observed, plan } = await decide(deps, { pool, jobs, signal })
    const removals = plan.steps.filter(({ kind }) => kind === 'remove')
    const steps = plan.steps.filter(({ kind }) => kind !== 'remove')
    const isApplied = await applySteps(deps, { pool, steps, signal }).catch(
      async (error: unknown) => {
        const rejected = rejectedPlan(plan, error)
        if (rejected !== undefined) {
          await report(deps, { pool, observed, plan: rejected, signal })
          await removeJobs(deps, { pool, steps: removals, signal }) // may free an exceeded quota
        }
        throw error
      },
    )
    const reported = isApplied ? plan : (withoutStart(plan) ?? plan)
    const isReported = await report(deps, { pool, observed, plan: reported, signal })
    if (!isApplied || !isReported) return { requeueAfterMs: CONFLICT_RETRY_MS }
    // Last, because a Job that cannot be deleted must not prevent anything else.
    const areRemoved = await removeJobs(deps, { pool, steps: removals, signal })
    const { requeueAfterMs } = plan
    if (areRemoved) return { requeueAfterMs }
    return { requeueAfterMs: Math.max(requeueAfterMs ?? 0, REMOVAL_RETRY_MS) }
  }
}

interface Decision {
  readonly observed: ObservedPool
  readonly plan: RefillPlan
}

/** Observes and plans; if a refill starts or completes, plans with a fresh level instead. */
async function decide(
  deps: ReconcileDeps,
  input: { pool: CodePool; jobs: ObserveDeps['jobs']; signal: AbortSignal },
): Promise<Decision> {
  const { pool, jobs, signal } = input
  const { levels, wallMs } = deps
  const observation = await observe({ ...deps, jobs }, pool, signal)
  const planFor = (stored: ObservedStore) => {
    const observed = { ...observation, stored }
    return { observed, plan: planRefillJob(observed, wallMs()) }
  }
  const first = planFor(levels.get(storeNameOf(pool)))
  const startsRefill = first.plan.steps.some(({ kind }) => kind === 'start')
  if (!startsRefill && first.plan.changes.length === 0) return first
  const isFresh = await levels.refresh()
  const reason = 'the code store is unavailable'
  return planFor(isFresh ? levels.get(storeNameOf(pool)) : { kind: 'unknown', reason })
}

/**
 * The plan to report if the API server rejected a Job, for example because of a quota;
 * `undefined` if the Job may have been created. A plan that starts a Job cancels none, so no
 * cancellation causes the error.
 */
function rejectedPlan(plan: RefillPlan, error: unknown): RefillPlan | undefined {
  const unstarted = withoutStart(plan)
  if (unstarted === undefined || !(error instanceof KubeError)) return undefined
  if (![400, 403, 404, 422].includes(error.status)) return undefined
  return { ...unstarted, blocker: { reason: 'JobRejected', message: error.message } }
}

/** The plan to report if its Job was not created; `undefined` if the plan starts none. */
function withoutStart(plan: RefillPlan): RefillPlan | undefined {
  const start = plan.steps.find((step) => step.kind === 'start')
  if (start === undefined) return undefined
  return { ...plan, history: { ...plan.history, started: start.refill - 1 }, steps: [] }
}

interface Steps {
  readonly pool: CodePool
  readonly steps: RefillPlan['steps']
  readonly signal: AbortSignal
}

/** Deletes old Jobs; returns whether all are deleted. */
async function removeJobs(deps: ReconcileDeps, { pool, steps, signal }: Steps): Promise<boolean> {
  const results = await Promise.all(
    steps.map(async (step) => {
      try {
        return await applySteps(deps, { pool, steps: [step], signal })
      } catch (err) {
        if (!(err instanceof KubeError)) throw err
        if (!signal.aborted) deps.log.warn({ err, key: keyOf(pool) }, 'old Job not deleted')
        return false
      }
    }),
  )
  return results.every(Boolean)
}

/** Applies the steps; returns whether all were applied. */
async function applySteps(deps: ReconcileDeps, { pool, steps, signal }: Steps): Promise<boolean> {
  const template = deps.template()
  const context = {
    pool,
    storeName: storeNameOf(pool),
    owner: ownerOf(pool, deps.ownerPrefix),
    template: isProblem(template) ? undefined : template,
    signal,
  }
  for (const step of steps) {
    if (await applyStep(deps, step, context)) continue
    // Another CodePool owns the pool, or the template has a problem: the next reconcile reports it.
    await deps.levels.refresh()
    return false
  }
  return true
}

/** Writes a changed status and emits events for its changes; returns false on a conflict. */
async function report(
  deps: ReconcileDeps,
  input: { pool: CodePool; observed: ObservedPool; plan: RefillPlan; signal: AbortSignal },
): Promise<boolean> {
  const { pool, observed, plan, signal } = input
  const nowMs = deps.wallMs()
  const status: CodePoolStatus = renderStatus(pool, {
    observed,
    plan,
    storeName: storeNameOf(pool),
    nowMs,
  })
  if (isSameStatus(pool.status, status)) return true
  try {
    const written = (await applyStatus(deps.api, { pool, status, signal })) as CodePool
    const cache = deps.poolsIn(pool.metadata.namespace)
    // Replaces only the version that the status was built from: a newer one must not be lost.
    const cached = cache?.get(keyOf(pool))
    if (cached?.metadata.resourceVersion === pool.metadata.resourceVersion) cache?.put(written)
  } catch (error) {
    if (hasStatus(error, 404)) return true // deleted in the meantime
    if (!hasStatus(error, 409)) throw error
    return false
  }
  emitEvents(deps, { pool, status, plan })
  return true
}
