// Keeps one CodePool above its low-water mark: observe, plan, apply, report, once each.
import { planRefillJob } from '../../codes/plan-refill-job.ts'
import type { PoolSight, RefillPlan, StoredSight } from '../../codes/refill-sight.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { EventRecorder } from '../events.ts'
import { isStatus, KubeError } from '../kube-error.ts'
import type { ObjectCache } from '../object-cache.ts'
import { splitKey } from '../objects.ts'
import type { Reconciled } from '../run-workers.ts'
import { type ApplyDeps, applyStatus, applyStep } from './apply.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'
import type { Levels } from './levels.ts'
import { observe, type ObserveDeps, ownerOf, storeNameOf } from './observe.ts'
import { type RefillJob, isTrouble } from './refill-jobs.ts'
import { renderStatus, saysSame } from './render-status.ts'
import { tellChanges } from './tell-changes.ts'

/** What a reconcile works with. */
export interface ReconcileDeps extends ApplyDeps, Omit<ObserveDeps, 'jobs' | 'levels'> {
  readonly poolsIn: (namespace: string) => Pick<ObjectCache<CodePool>, 'get' | 'put'> | undefined
  readonly jobsIn: (namespace: string) => Pick<ObjectCache<RefillJob>, 'listBy'> | undefined
  readonly levels: Levels
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'refillJobs'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** Another wrote meanwhile: what it wrote is seen soon. */
const CONFLICT_MS = 200

/** Reconciles the CodePool of a key. Throws KubeError, and what the store throws. */
export function createReconcile(deps: ReconcileDeps) {
  return async (key: string, signal: AbortSignal): Promise<Reconciled> => {
    const { namespace } = splitKey(key)
    const pool = deps.poolsIn(namespace)?.get(key)
    const jobs = deps.jobsIn(namespace)
    // Deleted: its Jobs go with it, by their owner references; nothing in the store is ours alone.
    if (pool === undefined || jobs === undefined) return {}
    if (pool.metadata.deletionTimestamp !== undefined) return {}
    const { seen, plan } = await decide(deps, { pool, jobs, signal })
    const isDone = await carryOut(deps, { pool, plan, signal }).catch(async (error: unknown) => {
      const refused = refusedPlan(plan, error)
      if (refused !== undefined) await report(deps, { pool, seen, plan: refused, signal })
      throw error
    })
    const isTold = await report(deps, { pool, seen, plan, signal })
    if (!isDone || !isTold) return { requeueAfterMs: CONFLICT_MS }
    return { requeueAfterMs: plan.requeueAfterMs }
  }
}

interface Decided {
  readonly seen: PoolSight
  readonly plan: RefillPlan
}

/** Observes and plans; what rests on the level is planned again with the level of now. */
async function decide(
  deps: ReconcileDeps,
  given: { pool: CodePool; jobs: ObserveDeps['jobs']; signal: AbortSignal },
): Promise<Decided> {
  const { pool, jobs, signal } = given
  const { levels, wallMs } = deps
  const rest = await observe({ ...deps, jobs, levels }, pool, signal)
  const planFor = (stored: StoredSight) => {
    const seen = { ...rest, stored }
    return { seen, plan: planRefillJob(seen, wallMs()) }
  }
  const first = planFor(levels.get(storeNameOf(pool)))
  const restsOnLevel = first.plan.steps.some(({ kind }) => kind === 'begin')
  if (!restsOnLevel && first.plan.news.length === 0) return first
  const isAnswered = await levels.refresh()
  const why = 'the store of codes does not answer'
  return planFor(isAnswered ? levels.get(storeNameOf(pool)) : { kind: 'unknown', why })
}

/** What is to be said where the API server refuses a Job, as by a quota or a policy. */
function refusedPlan(plan: RefillPlan, error: unknown): RefillPlan | undefined {
  const begin = plan.steps.find((step) => step.kind === 'begin')
  if (begin === undefined || !(error instanceof KubeError)) return undefined
  if (![400, 403, 404, 422].includes(error.status)) return undefined
  const hindrance = { reason: 'JobRefused', message: error.message }
  return { ...plan, hindrance, history: { ...plan.history, begun: begin.refill - 1 }, steps: [] }
}

/** Does the steps; whether all were done. */
async function carryOut(
  deps: ReconcileDeps,
  { pool, plan, signal }: { pool: CodePool; plan: RefillPlan; signal: AbortSignal },
): Promise<boolean> {
  const template = deps.template()
  const context = {
    pool,
    storeName: storeNameOf(pool),
    owner: ownerOf(pool, deps.ownerPrefix),
    template: isTrouble(template) ? undefined : template,
    signal,
  }
  for (const step of plan.steps) {
    if (await applyStep(deps, step, context)) continue
    await deps.levels.refresh() // somebody else has it: the next look says so
    return false
  }
  return true
}

/** Writes the status where it says something new; whether it stands. */
async function report(
  deps: ReconcileDeps,
  given: { pool: CodePool; seen: PoolSight; plan: RefillPlan; signal: AbortSignal },
): Promise<boolean> {
  const { pool, seen, plan, signal } = given
  const nowMs = deps.wallMs()
  const status: CodePoolStatus = renderStatus(pool, {
    seen,
    plan,
    storeName: storeNameOf(pool),
    nowMs,
  })
  if (saysSame(pool.status, status)) return true
  try {
    const written = (await applyStatus(deps.api, { pool, status, signal })) as CodePool
    const cache = deps.poolsIn(pool.metadata.namespace)
    // Made from the version that the cache holds, so that no other lies between the two.
    const held = cache?.get(`${pool.metadata.namespace}/${pool.metadata.name}`)
    if (held?.metadata.resourceVersion === pool.metadata.resourceVersion) cache?.put(written)
  } catch (error) {
    if (isStatus(error, 404)) return true // deleted meanwhile
    if (!isStatus(error, 409)) throw error
    return false
  }
  tellChanges(deps, { pool, status, plan })
  return true
}
