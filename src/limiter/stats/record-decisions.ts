// Counts every decision in the statistics, the metrics, the audit and the top values, and logs each
// minute which values were denied.
import type { Check } from '../../limits/plan-checks.ts'
import { capacityOf } from '../../limits/verdict.ts'
import { runInBackground } from '../../resilience/background.ts'
import type { Log } from '../../telemetry/log.ts'
import type { DecideLimitsDeps, DecisionSource } from '../decide/decide-limits.ts'
import type { RuleStats } from './rule-stats.ts'
import type { TopMinute, TopValues } from './top-values.ts'

/** Where decisions are counted. */
export interface RecordDeps {
  readonly stats: RuleStats
  /** `undefined`: top values are not counted. */
  readonly top: TopValues | undefined
  readonly decisions: {
    inc(labels: { source: DecisionSource; result: 'admitted' | 'denied' }): void
  }
}

const MINUTE_MS = 60_000
/** Maximum number of values per minute that have their own log line. */
const LINES_MAX = 20

/** Creates the function that counts a decision. */
export function createRecorder({ stats, top, decisions }: RecordDeps): DecideLimitsDeps['record'] {
  return (check: Check, { admitted, remaining, over }, source) => {
    const { requestedHits: hits, rule } = check
    const [capacity, { isShadow }] = [capacityOf(rule), rule]
    const isFromDenyCache = source === 'deny-cache'
    const usage = { hits, admitted, remaining, over, capacity, isShadow, isFromDenyCache }
    const audited = stats.countersOf(check.metricPath).record(usage)
    if (audited > 0) stats.audit.count(rule, audited)
    top?.record(check, admitted)
    decisions.inc({ source, result: admitted ? 'admitted' : 'denied' })
  }
}

/** Ends and logs the minute of `top` every minute, until the returned function is called. */
export function startLoggingTopValues(top: TopValues, log: Log): () => Promise<void> {
  const task = () => {
    logDenied(top.endMinute(Date.now()), log)
  }
  const onError = (err: unknown) => {
    log.error({ err }, 'top values not logged')
  }
  const minutes = runInBackground({ everyMs: MINUTE_MS, task, onError })
  return () => minutes.stop()
}

/** Logs the values with the most denied hits, a line each, and the number of the others. */
export function logDenied({ top }: TopMinute, log: Pick<Log, 'info'>): void {
  const denied = top.filter((one) => one.denied > 0).toSorted((a, b) => b.denied - a.denied)
  for (const { isShadow, ...one } of denied.slice(0, LINES_MAX)) {
    const done = isShadow ? 'hits beyond the limit, admitted by shadow mode,' : 'hits denied'
    log.info(one, `${done} in the last minute`)
  }
  const others = denied.length - LINES_MAX
  if (others > 0) log.info({ others }, 'more values exceeded their limits in the last minute')
}
