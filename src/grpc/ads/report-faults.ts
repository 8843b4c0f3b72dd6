// Reports faults of clients: each is counted in a metric, and one per reason and period is logged.
import { monotonicMs } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Reasons of faults, which are the values of the metric's label. */
const faultReasons = [
  'tls',
  'protocol',
  'type',
  'rejected',
  'abuse',
  'timeout',
  'connections',
] as const

/** Reports a fault with a sentence for the log. */
export type ReportFault = (reason: (typeof faultReasons)[number], sentence: string) => void

const LOG_EVERY_MS = 10_000

/** For one server: creates the function that returns a `ReportFault` for a client's address. */
export function createFaultReport(
  log: Pick<Log, 'warn'>,
  metrics: Pick<Metrics, 'adsFaults'>,
): (address: string) => ReportFault {
  const logs = new Map(faultReasons.map((reason) => [reason, { nextMs: 0, unlogged: 0 }]))
  for (const reason of faultReasons) metrics.adsFaults.inc({ reason }, 0)
  return (address) => (reason, sentence) => {
    metrics.adsFaults.inc({ reason })
    const { nextMs = 0, unlogged = 0 } = logs.get(reason) ?? {}
    const nowMs = monotonicMs()
    if (nowMs < nextMs) {
      logs.set(reason, { nextMs, unlogged: unlogged + 1 })
      return
    }
    logs.set(reason, { nextMs: nowMs + LOG_EVERY_MS, unlogged: 0 })
    log.warn({ reason, address, unlogged }, sentence)
  }
}
