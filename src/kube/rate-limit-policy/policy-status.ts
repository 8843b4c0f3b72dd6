// Decides the status of a RateLimitPolicy: whether the compiler accepted it, which generation is
// active, and how many limiters apply that generation. Pure.
import type { AcceptedSpec, PolicyOutcome } from '../../policies/policy.ts'
import { mergeConditions, type NewCondition } from '../conditions.ts'
import type { Condition } from '../objects.ts'
import type { RateLimitPolicy, RateLimitPolicyStatus } from './rate-limit-policy.ts'

/** The observed state of a policy and of the limiters. */
export interface ObservedPolicy {
  readonly outcome: PolicyOutcome
  /** The generation that the rules contain; `undefined`: none. */
  readonly activeGeneration: number | undefined
  /** The spec that was accepted last, even if the rules do not contain it. */
  readonly accepted: AcceptedSpec | undefined
  /** Number of limiters that accepted a version with the active generation. */
  readonly active: number
  /** Number of all limiters. */
  readonly total: number
  /** Whether a limiter rejects the rules with the active generation. */
  readonly isRejected: boolean
  /** What the policy would have denied; `undefined`: the active spec is not in mode Audit. */
  readonly audit: RateLimitPolicyStatus['audit']
  /** Number of limiters of the previous leader while some of them may still reconnect; else 0. */
  readonly expected: number
  readonly nowMs: number
}

/** Decides the status to write. */
export function decidePolicyStatus(
  { metadata, status: before }: Pick<RateLimitPolicy, 'metadata' | 'status'>,
  observed: ObservedPolicy,
): RateLimitPolicyStatus {
  const { generation = 0 } = metadata
  const { activeGeneration, accepted, nowMs } = observed
  const previous = (before?.conditions ?? []) as readonly Condition[]
  const merge = (conditions: readonly NewCondition[], of: number) =>
    mergeConditions(previous, conditions, { nowMs, generation: of })
  const status = {
    observedGeneration: generation,
    // The compiler has only specs that the API server has validated.
    ...(accepted && { accepted: accepted as NonNullable<RateLimitPolicyStatus['accepted']> }),
  }
  const acceptance = acceptanceOf(observed)
  if (activeGeneration === undefined) {
    const message = 'the limiters do not receive the policy, because it is not accepted'
    const programmed = newCondition('Programmed', 'False', { reason: 'NotAccepted', message })
    const conditions = [acceptance, programmed, ...stallOf(acceptance)]
    return { ...status, conditions: merge(conditions, generation) }
  }
  const isSame = before?.accepted?.generation === activeGeneration
  const replicas = replicasOf(observed, isSame ? before.replicas : undefined)
  const problem = problemOf(observed, replicas, nameOf(observed, generation))
  const programmed = problem
    ? newCondition('Programmed', 'False', problem)
    : newCondition('Programmed', 'True', {
        reason: 'Programmed',
        message: `all limiters apply ${nameOf(observed, generation)}`,
      })
  return {
    ...status,
    replicas,
    ...(observed.audit && { audit: observed.audit }),
    conditions: [
      ...merge([acceptance], generation),
      ...merge([programmed], activeGeneration),
      ...merge(progressOf(acceptance, problem), generation),
    ],
  }
}

type Replicas = NonNullable<RateLimitPolicyStatus['replicas']>
type Cause = Pick<NewCondition, 'reason' | 'message'>

function newCondition(
  type: string,
  status: NewCondition['status'],
  { reason, message }: Cause,
): NewCondition {
  return { type, status, reason, message }
}

/** What the limiters apply, in messages. */
function nameOf({ activeGeneration = 0 }: ObservedPolicy, generation: number): string {
  return activeGeneration === generation ? 'the policy' : `generation ${activeGeneration}`
}

/** The API server rejects messages of more than 1024 characters; the end must remain. */
const CAUSE_LENGTH_MAX = 900

function acceptanceOf({ outcome, activeGeneration }: ObservedPolicy): NewCondition {
  if (outcome.accepted) {
    const { reason = 'Accepted', message = 'the limiters receive the policy' } = outcome
    return newCondition('Accepted', 'True', { reason, message })
  }
  const { reason, message } = outcome
  if (activeGeneration === undefined) return newCondition('Accepted', 'False', { reason, message })
  const cause =
    message.length > CAUSE_LENGTH_MAX ? `${message.slice(0, CAUSE_LENGTH_MAX)}…` : message
  const active = `the limits of generation ${activeGeneration} stay active`
  return newCondition('Accepted', 'False', { reason, message: `${cause}; ${active}` })
}

function stallOf({ status, reason, message }: NewCondition): NewCondition[] {
  return status === 'False' ? [newCondition('Stalled', 'True', { reason, message })] : []
}

function progressOf(acceptance: NewCondition, problem: Cause | undefined): NewCondition[] {
  const stall = stallOf(acceptance)
  if (stall.length > 0 || problem === undefined) return stall
  const type = problem.reason === 'Rejected' ? 'Stalled' : 'Reconciling'
  return [newCondition(type, 'True', problem)]
}

/**
 * A new leader keeps the numbers of its predecessor until the limiters have reconnected. A policy
 * that has changed waits for all of them.
 */
function replicasOf(
  { active, total, isRejected, expected }: ObservedPolicy,
  before: Replicas | undefined,
): Replicas {
  const current = { active, total: Math.max(total, expected) }
  if (expected === 0 || isRejected || before === undefined) return current
  return active <= before.active && total <= before.total ? before : current
}

function problemOf(
  { isRejected }: ObservedPolicy,
  { active, total }: Replicas,
  name: string,
): Cause | undefined {
  if (isRejected) {
    // The log of the controller has the cause: it can be about policies of other namespaces.
    const message = 'a limiter rejects the newest rules, and keeps its previous ones'
    return { reason: 'Rejected', message }
  }
  if (total === 0) return { reason: 'NoLimiters', message: 'no limiter is connected' }
  if (active >= total) return undefined
  return { reason: 'Pending', message: `${active} of ${total} limiters apply ${name}` }
}
