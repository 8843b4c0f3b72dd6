// Builds the conditions of a CodePool: Ready (codes are available), Refilling and Degraded, and for
// GitOps tools Reconciling and Stalled. Pure; no other module builds these conditions.
import type { ObservedPool, RefillPlan, Problem } from './observed-state.ts'
import { STORE_UNAVAILABLE } from './plan-refill-job.ts'

/** One condition, without its timestamps. */
export interface PoolCondition extends Problem {
  readonly type: 'Ready' | 'Refilling' | 'Degraded' | 'Reconciling' | 'Stalled'
  readonly status: 'True' | 'False' | 'Unknown'
}

/** Time after which a running Job whose pod does not start counts as a problem. */
const START_MS_MAX = 30_000
/** Reasons of a failure that a retry may fix. */
const RETRIED_REASONS: ReadonlySet<string> = new Set(['RefillFailed', 'JobDeleted'])
/** Consecutive failures after which retries do not help: an operator has to act. */
const FAILURES_STALLED = 3

/**
 * Builds the conditions of a pool from its observed state and its plan. Those that kstatus reads,
 * Reconciling and Stalled, are present only if they are `True`.
 */
export function poolConditions(
  observed: ObservedPool,
  plan: RefillPlan,
  nowMs: number,
): readonly PoolCondition[] {
  const ready = readyOf(observed, plan)
  const degraded = degradedOf(plan, nowMs)
  const conditions = [ready, refillingOf(observed, plan), degraded]
  if (mustAct(degraded, plan)) conditions.push(condition('Stalled', 'True', degraded))
  else if (ready.status !== 'True' && !observed.spec.isPaused)
    conditions.push(condition('Reconciling', 'True', ready))
  return conditions
}

/** Whether the problem will probably persist until an operator changes something. */
function mustAct({ status, reason }: PoolCondition, { history }: RefillPlan): boolean {
  if (status !== 'True' || reason === STORE_UNAVAILABLE) return false
  return !RETRIED_REASONS.has(reason) || history.failures >= FAILURES_STALLED
}

function condition(
  type: PoolCondition['type'],
  status: PoolCondition['status'],
  { reason, message }: Problem,
): PoolCondition {
  return { type, status, reason, message }
}

function readyOf({ spec, stored }: ObservedPool, { blocker }: RefillPlan): PoolCondition {
  const ready = (status: PoolCondition['status'], reason: string, message: string) =>
    condition('Ready', status, { reason, message })
  if (blocker?.reason === 'OtherOwner') return condition('Ready', 'False', blocker)
  switch (stored.kind) {
    case 'unknown':
      return ready('Unknown', STORE_UNAVAILABLE, stored.reason)
    case 'absent':
      return ready('False', 'NeverFilled', 'the pool has never been filled')
    case 'present':
      if (stored.level <= 0) return ready('False', 'Empty', 'no code is left')
      if (stored.level < spec.lowWater)
        return ready('False', 'BelowLowWater', 'the level is below spec.lowWater')
      return ready('True', 'LevelSufficient', 'the level is at least spec.lowWater')
  }
}

function refillingOf({ spec }: ObservedPool, plan: RefillPlan): PoolCondition {
  const { running, blocker, isWanted, retryAtMs } = plan
  const not = (reason: string, message: string) =>
    condition('Refilling', 'False', { reason, message })
  const start = plan.steps.find((step) => step.kind === 'start')
  if (start !== undefined || running !== null) {
    const refill = start?.refill ?? running?.refill ?? 0
    const message = `refill ${refill} is running`
    return condition('Refilling', 'True', { reason: 'JobRunning', message })
  }
  if (spec.isPaused) return not('Paused', 'spec.paused is true')
  if (blocker !== null) return condition('Refilling', 'False', blocker)
  if (retryAtMs !== null)
    return not('BackingOff', 'the last refill failed; the next one starts after a back-off')
  if (isWanted) return not('Waiting', 'a Job is being deleted')
  return not('NotNeeded', 'the level requires no refill')
}

/** The worst problem; `null` if there is none. */
function problemOf({ blocker, running, history }: RefillPlan, nowMs: number): Problem | null {
  if (blocker !== null) return blocker
  if (running?.problem != null && nowMs - running.startedMs >= START_MS_MAX) return running.problem
  return history.failures > 0 && history.last?.outcome === 'Failed' ? history.last : null
}

function degradedOf(plan: RefillPlan, nowMs: number): PoolCondition {
  const problem = problemOf(plan, nowMs)
  if (problem !== null) return condition('Degraded', 'True', problem)
  return condition('Degraded', 'False', { reason: 'AsExpected', message: 'no problem' })
}
