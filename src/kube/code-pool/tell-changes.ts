// Reports what a reconcile changed: events for `kubectl describe`, log entries, counts of refills.
// Called once the status is written, so that nothing is reported twice.
import type { RefillOutcome, RefillPlan } from '../../codes/refill-sight.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { EventRecorder, EventTold } from '../events.ts'
import { CODE_POOLS, type CodePool, type CodePoolStatus } from './code-pool.ts'
import { degradedOf } from './read-status.ts'

/** Tells it. */
export function tellChanges(
  deps: {
    events: EventRecorder
    metrics: Pick<Metrics, 'refillJobs'>
    log: Pick<Log, 'info' | 'warn'>
  },
  { pool, status, plan }: { pool: CodePool; status: CodePoolStatus; plan: RefillPlan },
): void {
  const { events, metrics, log } = deps
  const { name, namespace, uid } = pool.metadata
  const { apiVersion, kind } = CODE_POOLS
  const regarding = { apiVersion, kind, name, namespace, uid }
  const tell = (event: Omit<EventTold, 'regarding'>) => {
    events.tell({ regarding, ...event })
  }
  for (const outcome of plan.news) {
    metrics.refillJobs.inc({ outcome: outcome.outcome.toLowerCase() })
    tell(eventOf(outcome))
    logOutcome(log, { namespace, pool: name }, outcome)
  }
  if (hasBegun(pool, status)) {
    metrics.refillJobs.inc({ outcome: 'begun' })
    const begin = plan.steps.find((step) => step.kind === 'begin')
    const aim = begin === undefined ? '' : `, up to ${begin.fillTo} codes`
    const note = `Refill ${status.refills ?? 0} has begun${aim}`
    tell({ type: 'Normal', reason: 'RefillBegun', action: 'Refill', note })
    const { refills: refill, level } = status
    log.info({ namespace, pool: name, refill, level, fillTo: begin?.fillTo }, 'refill started')
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

function logOutcome(
  log: Pick<Log, 'info' | 'warn'>,
  of: { readonly namespace: string; readonly pool: string },
  { refill, job, outcome, reason, message, startedMs, finishedMs }: RefillOutcome,
): void {
  const entry = { ...of, refill, job, tookMs: Math.max(0, finishedMs - startedMs) }
  if (outcome === 'Succeeded') log.info(entry, 'refill completed')
  else if (outcome === 'Cancelled') log.info({ ...entry, reason: message }, 'refill cancelled')
  else log.warn({ ...entry, reason, detail: message }, 'refill failed')
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
