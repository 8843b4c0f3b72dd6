// What is said of a pool: whether creates get codes from it, whether it is being filled, and what
// is wrong. Pure, and the only place where these conditions are made.
import type { PoolSight, RefillPlan, Trouble } from './refill-sight.ts'

/** One condition, without its times. */
export interface PoolCondition extends Trouble {
  readonly type: 'Ready' | 'Refilling' | 'Degraded'
  readonly status: 'True' | 'False' | 'Unknown'
}

/** A Job at work may take so long to begin before that counts as trouble. */
const BEGIN_MS_MAX = 30_000

/** The conditions of a pool for which `plan` was made. */
export function poolConditions(
  seen: PoolSight,
  plan: RefillPlan,
  nowMs: number,
): readonly PoolCondition[] {
  return [readyOf(seen, plan), refillingOf(seen, plan), degradedOf(seen, plan, nowMs)]
}

function condition(
  type: PoolCondition['type'],
  status: PoolCondition['status'],
  { reason, message }: Trouble,
): PoolCondition {
  return { type, status, reason, message }
}

function readyOf({ spec, stored }: PoolSight, { hindrance }: RefillPlan): PoolCondition {
  const say = (status: PoolCondition['status'], reason: string, message: string) =>
    condition('Ready', status, { reason, message })
  if (hindrance?.reason === 'OtherOwner') return condition('Ready', 'False', hindrance)
  switch (stored.kind) {
    case 'unknown':
      return say('Unknown', 'StoreUnavailable', stored.why)
    case 'absent':
      return say('False', 'NeverFilled', 'the pool has never been filled')
    case 'there':
      if (stored.level <= 0) return say('False', 'Empty', 'no code is left')
      if (stored.level < spec.lowWater)
        return say('False', 'BelowLowWater', 'fewer codes are left than spec.lowWater')
      return say('True', 'LevelSufficient', 'at least spec.lowWater codes are left')
  }
}

function refillingOf({ spec }: PoolSight, plan: RefillPlan): PoolCondition {
  const { running, hindrance, isWanted, retryAtMs } = plan
  const not = (reason: string, message: string) =>
    condition('Refilling', 'False', { reason, message })
  const begin = plan.steps.find((step) => step.kind === 'begin')
  if (begin !== undefined || running !== null) {
    const refill = begin?.refill ?? running?.refill ?? 0
    const message = `refill ${refill} is at work`
    return condition('Refilling', 'True', { reason: 'JobRunning', message })
  }
  if (spec.isPaused) return not('Paused', 'spec.paused is true')
  if (hindrance !== null) return condition('Refilling', 'False', hindrance)
  if (retryAtMs !== null)
    return not('BackingOff', 'the last refill failed; the next is begun after a while')
  if (isWanted) return not('Waiting', 'a Job that is being removed has not gone yet')
  return not('NotNeeded', 'the level asks for no refill')
}

type TroubleCheck = (given: { seen: PoolSight; plan: RefillPlan; nowMs: number }) => Trouble | null

/** What can be wrong, the worst first; the first that answers is said. */
const troubles: readonly TroubleCheck[] = [
  ({ plan }) => plan.hindrance,
  ({ plan: { running }, nowMs }) =>
    running?.trouble != null && nowMs - running.startedMs >= BEGIN_MS_MAX ? running.trouble : null,
  ({ plan: { history } }) =>
    history.failures > 0 && history.last !== null && history.last.outcome === 'Failed'
      ? { reason: history.last.reason, message: history.last.message }
      : null,
]

function degradedOf(seen: PoolSight, plan: RefillPlan, nowMs: number): PoolCondition {
  for (const check of troubles) {
    const trouble = check({ seen, plan, nowMs })
    if (trouble !== null) return condition('Degraded', 'True', trouble)
  }
  return condition('Degraded', 'False', { reason: 'AsExpected', message: 'nothing is wrong' })
}
