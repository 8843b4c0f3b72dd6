// Reports the state of the counter store, and each failed call, in the log, metrics, statistics and
// health.
import { messageOf } from '../../resilience/message-of.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { RuleStats } from '../stats/rule-stats.ts'
import type { StoreHealth } from './store-health.ts'

/** Where the state is reported. */
interface StoreStateReportDeps {
  readonly storeHealth: StoreHealth
  readonly stats: Pick<RuleStats, 'service'>
  readonly metrics: Pick<Metrics, 'limiterStoreFailures' | 'limiterStoreUnavailable'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** Maximum number of causes that are logged in one outage. */
const CAUSES_MAX = 10

/** The functions that the store and its circuit breaker call. */
export function createStoreStateReports({
  storeHealth,
  stats,
  metrics,
  log,
}: StoreStateReportDeps) {
  let lastCause: unknown
  const causes = new Set<string>() // logged in this outage
  const logCause = (err: unknown) => {
    if (causes.size >= CAUSES_MAX || causes.has(messageOf(err))) return
    causes.add(messageOf(err))
    log.error({ err }, 'calls to Redis fail or time out: the on_store_error of each rule applies')
  }
  return {
    /** The listeners of the connection with this name. */
    listenersOf: (redis: string) => ({
      onDown: (err: unknown, level: 'info' | 'warn') => {
        log[level]({ err, redis }, 'Redis unavailable')
        storeHealth.setConnection(redis, false)
      },
      onUp: () => {
        log.info({ redis }, 'Redis available')
        storeHealth.setConnection(redis, true)
      },
    }),
    /** `cause`: an error, or the value of the metric's label `reason`. */
    onFailure: (cause: unknown) => {
      lastCause = cause
      stats.service.redisError++
      metrics.limiterStoreFailures.inc({ reason: typeof cause === 'string' ? cause : 'error' })
    },
    onOpenChange: (isOpen: boolean, isProbed: boolean) => {
      storeHealth.setCircuit(isOpen, isProbed)
      metrics.limiterStoreUnavailable.set(isOpen ? 1 : 0)
      causes.clear()
      if (isOpen) logCause(lastCause)
      else log.info('Redis responds: counting in Redis')
    },
    /** Logs a cause once per outage. */
    onProbeFailure: logCause,
  }
}
