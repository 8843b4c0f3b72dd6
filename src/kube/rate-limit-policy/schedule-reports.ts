// Queues the outdated statuses of policies after a change, and when time makes one outdated.
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Scheduler } from '../scheduler.ts'
import { createDebounce } from './debounce.ts'
import type { PolicyReports } from './report-policies.ts'

/** Limiters accept a version one after the other; then the statuses are compared once. */
const REPORT_QUIET_MS = 150
const REPORT_MS_MAX = 1000
/** Time between two of the writes that one comparison queues. */
const WRITE_INTERVAL_MS = 20

/** When statuses are compared. */
export interface ReportSchedule {
  /** Must be called when a status may be outdated. */
  readonly trigger: () => void
  /** Must be called when the time at which a status becomes outdated may have changed. */
  readonly recheckLater: () => void
  readonly cancel: () => void
}

/** Creates the schedule; `enqueue` adds a policy to the queue of writes after `ms`. */
export function scheduleReports(
  given: {
    readonly scheduler: Scheduler
    readonly enqueue: (key: string, ms: number) => void
    readonly metrics: Pick<Metrics, 'backgroundFailures'>
    readonly log: Pick<Log, 'error'>
  },
  reports: Pick<PolicyReports, 'outdated' | 'nextChangeMs'>,
): ReportSchedule {
  const { scheduler, enqueue, metrics, log } = given
  let recheck: { readonly atMs: number; readonly cancel: () => void } | undefined
  const recheckLater = () => {
    const nowMs = scheduler.nowMs()
    // `nextChangeMs` returns only later times: a recheck that is due must not be lost.
    if (recheck !== undefined && recheck.atMs <= nowMs) return
    recheck?.cancel()
    recheck = undefined
    const atMs = reports.nextChangeMs()
    if (atMs === undefined) return
    const start = () => {
      recheck = undefined
      debounce.trigger()
    }
    recheck = { atMs, cancel: scheduler.after(atMs - nowMs, start) }
  }
  const debounce = createDebounce({
    scheduler,
    quietMs: REPORT_QUIET_MS,
    msMax: REPORT_MS_MAX,
    run() {
      try {
        for (const [at, key] of reports.outdated().entries()) enqueue(key, at * WRITE_INTERVAL_MS)
        recheckLater()
      } catch (err) {
        // A defect, which must not stop the leader: the rules stay up to date.
        metrics.backgroundFailures.inc({ task: 'report-policies' })
        log.error({ err }, 'statuses of policies not compared until the next change')
      }
    },
  })
  return {
    trigger: debounce.trigger,
    recheckLater,
    cancel() {
      debounce.cancel()
      recheck?.cancel()
    },
  }
}
