// Decides the status of a RateLimitPolicy: whether the compiler accepted it, and how many limiters
// apply it. Pure.
import type { PolicyOutcome } from '../../policies/policy.ts'
import { mergeConditions, type NewCondition } from '../conditions.ts'
import type { Condition } from '../objects.ts'
import type { RateLimitPolicy, RateLimitPolicyStatus } from './rate-limit-policy.ts'

/** The observed state of a policy and of the limiters. */
export interface ObservedPolicy {
  readonly outcome: PolicyOutcome
  /** Limiters that accepted a version with this generation of the policy. */
  readonly active: number
  /** All limiters. */
  readonly total: number
  /** Why a limiter rejects the newest version, which contains the policy. */
  readonly rejection: string | undefined
  /** Whether limiters of the previous status may still reconnect to a new leader. */
  readonly isSettling: boolean
  readonly nowMs: number
}

/** Decides the status to write. */
export function decidePolicyStatus(
  { metadata, status: before }: Pick<RateLimitPolicy, 'metadata' | 'status'>,
  observed: ObservedPolicy,
): RateLimitPolicyStatus {
  const { generation = 0 } = metadata
  const isSame = before?.observedGeneration === generation
  const replicas = replicasOf(observed, isSame ? before.replicas : undefined)
  const conditions = conditionsOf(observed, replicas)
  const previous = (before?.conditions ?? []) as readonly Condition[]
  return {
    observedGeneration: generation,
    replicas,
    conditions: mergeConditions(previous, conditions, { nowMs: observed.nowMs, generation }),
  }
}

type Replicas = NonNullable<RateLimitPolicyStatus['replicas']>

/** A new leader keeps the numbers of its predecessor until the limiters have reconnected. */
function replicasOf(
  { outcome, active, total, rejection, isSettling }: ObservedPolicy,
  before: Replicas | undefined,
): Replicas {
  const current = { active: outcome.accepted ? active : 0, total }
  if (!isSettling || rejection !== undefined || before === undefined) return current
  return current.active <= before.active && total <= before.total ? before : current
}

function conditionsOf(observed: ObservedPolicy, replicas: Replicas): NewCondition[] {
  const { outcome } = observed
  if (!outcome.accepted) {
    const { reason, message } = outcome
    const programmed = 'the limiters do not receive the policy, because it is not accepted'
    return [
      { type: 'Accepted', status: 'False', reason, message },
      { type: 'Programmed', status: 'False', reason: 'NotAccepted', message: programmed },
      { type: 'Stalled', status: 'True', reason, message },
    ]
  }
  const { message = 'the limiters receive the policy' } = outcome
  const accepted: NewCondition = { type: 'Accepted', status: 'True', reason: 'Accepted', message }
  const problem = problemOf(observed, replicas)
  if (problem === undefined) {
    const applied = 'all limiters apply the policy'
    return [
      accepted,
      { type: 'Programmed', status: 'True', reason: 'Programmed', message: applied },
    ]
  }
  const type = problem.reason === 'Rejected' ? 'Stalled' : 'Reconciling'
  return [
    accepted,
    { type: 'Programmed', status: 'False', ...problem },
    { type, status: 'True', ...problem },
  ]
}

function problemOf(
  { rejection }: ObservedPolicy,
  { active, total }: Replicas,
): Pick<NewCondition, 'reason' | 'message'> | undefined {
  if (rejection !== undefined) return { reason: 'Rejected', message: rejection }
  if (total === 0) return { reason: 'NoLimiters', message: 'no limiter is connected' }
  if (active >= total) return undefined
  return { reason: 'Pending', message: `${active} of ${total} limiters apply the policy` }
}
