// Tells what a reconcile changed: events for `kubectl describe`, and counts of refills. Called once
// the status stands, so that nothing is told twice.
import type { RefillOutcome, RefillPlan } from '../../codes/refill-sight.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { EventRecorder, EventTold } from '../events.ts'
import { CODE_POOLS, type CodePool, type CodePoolStatus } from './code-pool.ts'
import { degradedOf } from './render-status.ts'

/** Tells it. */
export function tellChanges(
  { events, metrics }: { events: EventRecorder; metrics: Pick<Metrics, 'refillJobs'> },
  { pool, status, plan }: { pool: CodePool; status: CodePoolStatus; plan: RefillPlan },
): void {
  const { name, namespace, uid } = pool.metadata
  const { apiVersion, kind } = CODE_POOLS
  const regarding = { apiVersion, kind, name, namespace, uid }
  const tell = (event: Omit<EventTold, 'regarding'>) => {
    events.tell({ regarding, ...event })
  }
  for (const outcome of plan.news) {
    metrics.refillJobs.inc({ outcome: outcome.outcome.toLowerCase() })
    tell(eventOf(outcome))
  }
  if (hasBegun(pool, status)) {
    metrics.refillJobs.inc({ outcome: 'begun' })
    const begin = plan.steps.find((step) => step.kind === 'begin')
    const aim = begin === undefined ? '' : `, up to ${begin.fillTo} codes`
    const note = `Refill ${status.refills ?? 0} has begun${aim}`
    tell({ type: 'Normal', reason: 'RefillBegun', action: 'Refill', note })
  }
  const [now, before] = [degradedOf(status), degradedOf(pool.status)]
  if (now === undefined || now.reason === before?.reason) return
  const { message: note, reason } = now
  if (now.status === 'True') tell({ type: 'Warning', reason, action: 'Reconcile', note })
  else if (before !== undefined)
    tell({ type: 'Normal', reason: 'Recovered', action: 'Reconcile', note })
}

/** Whether a refill is at work that was not told of. */
function hasBegun({ status: before }: CodePool, { refills = 0, lastRefill }: CodePoolStatus) {
  return refills > (before?.refills ?? 0) && lastRefill?.refill !== refills
}

function eventOf(outcome: RefillOutcome): Omit<EventTold, 'regarding'> {
  const { refill, message, startedMs, finishedMs } = outcome
  const seconds = Math.max(0, Math.round((finishedMs - startedMs) / 1000))
  switch (outcome.outcome) {
    case 'Succeeded':
      return {
        type: 'Normal',
        reason: 'RefillSucceeded',
        action: 'Refill',
        note: `Refill ${refill} ended after ${seconds} s`,
      }
    case 'Cancelled':
      return {
        type: 'Normal',
        reason: 'RefillCancelled',
        action: 'Cancel',
        note: `Refill ${refill} was ended: ${message}`,
      }
    case 'Failed':
      return {
        type: 'Warning',
        reason: 'RefillFailed',
        action: 'Refill',
        note: `Refill ${refill} failed: ${message}`,
      }
  }
}
