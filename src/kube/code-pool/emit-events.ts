// Reports the changes of a reconcile: events for `kubectl describe`, log entries, refill metrics.
// Called after the status is written, so that nothing is reported twice.
import type { RefillOutcome, RefillPlan } from '../../codes/observed-state.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { EventRecorder, EventInput } from '../events.ts'
import { CODE_POOLS, type CodePool, type CodePoolStatus } from './code-pool.ts'
import { degradedOf } from './read-status.ts'
import { jobNameOf } from './refill-jobs.ts'

/** The start of a refill; its levels are missing if they are unknown. */
interface Start {
  readonly refill: number
  readonly job: string
  readonly poolLevel?: number | undefined
  readonly fillTo?: number | undefined
}

/** Emits events and log entries, and counts refills, for the changes since `pool.status`. */
export function emitEvents(
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
  const emit = (event: Omit<EventInput, 'regarding'>) => {
    events.emit({ regarding, ...event })
  }
  const { level } = status
  const reportStart = (start: Start) => {
    const { refill, fillTo } = start
    metrics.refillJobs.inc({ result: 'started' })
    const upTo = fillTo === undefined ? '' : `, up to ${fillTo} codes`
    const note = `Refill ${refill} has started${upTo}`
    emit({ type: 'Normal', reason: 'RefillStarted', action: 'Refill', note })
    log.info({ namespace, pool: name, ...start }, 'refill started')
  }
  for (const outcome of plan.changes) {
    // A short refill may finish before its start is reported, for example after a conflict. Then
    // the start is reported without a level: the known level is the one after the refill.
    const { refill } = outcome
    const job = outcome.job === '' ? jobNameOf(pool, refill) : outcome.job
    if (refill > (pool.status?.refills ?? 0)) reportStart({ refill, job })
    metrics.refillJobs.inc({ result: outcome.outcome.toLowerCase() })
    emit(eventOf(outcome))
    logOutcome(log, { namespace, pool: name, poolLevel: level }, outcome)
  }
  if (hasStarted(pool, status)) {
    const { refills: refill = 0 } = status
    const start = plan.steps.find((step) => step.kind === 'start')
    reportStart({ refill, job: jobNameOf(pool, refill), poolLevel: level, fillTo: start?.fillTo })
  }
  const [current, previous] = [degradedOf(status), degradedOf(pool.status)]
  if (current === undefined || current.reason === previous?.reason) return
  const { message: note, reason } = current
  if (current.status === 'True') emit({ type: 'Warning', reason, action: 'Reconcile', note })
  else if (previous !== undefined)
    emit({ type: 'Normal', reason: 'Recovered', action: 'Reconcile', note })
}

/** Whether a refill has started since the previous status, and has no outcome. */
function hasStarted({ status: before }: CodePool, { refills = 0, lastRefill }: CodePoolStatus) {
  return refills > (before?.refills ?? 0) && lastRefill?.refill !== refills
}

function logOutcome(
  log: Pick<Log, 'info' | 'warn'>,
  fields: {
    readonly namespace: string
    readonly pool: string
    readonly poolLevel: number | undefined
  },
  { refill, job, outcome, reason, message, startedMs, finishedMs }: RefillOutcome,
): void {
  const entry = { ...fields, refill, job, tookMs: Math.max(0, finishedMs - startedMs) }
  if (outcome === 'Succeeded') log.info(entry, 'refill completed')
  else if (outcome === 'Cancelled') log.info({ ...entry, reason: message }, 'refill cancelled')
  else log.warn({ ...entry, reason, detail: message }, 'refill failed')
}

function eventOf(outcome: RefillOutcome): Omit<EventInput, 'regarding'> {
  const { refill, message, startedMs, finishedMs } = outcome
  const seconds = Math.max(0, Math.round((finishedMs - startedMs) / 1000))
  switch (outcome.outcome) {
    case 'Succeeded':
      return {
        type: 'Normal',
        reason: 'RefillSucceeded',
        action: 'Refill',
        note: `Refill ${refill} completed after ${seconds} s`,
      }
    case 'Cancelled':
      return {
        type: 'Normal',
        reason: 'RefillCancelled',
        action: 'Cancel',
        note: `Refill ${refill} was cancelled: ${message}`,
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
