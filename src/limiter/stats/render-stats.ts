// Exports the limiter's counters with the names of envoyproxy/ratelimit: to statsd, to Prometheus
// and at /stats. Only reads the counters.
import type { Sample } from '../../telemetry/collected-counter.ts'
import type { StatsReading } from '../../telemetry/statsd.ts'
import { type CounterName, counterNames, type RuleCounters } from './rule-counters.ts'
import type { RuleStats, ServiceCounts } from './rule-stats.ts'

/** Labels of a rule's metrics; `rule` is the whole path, the others are its first components. */
export type RuleLabel = 'domain' | 'key1' | 'key2' | 'rule'

/** A metric that reads its series from a callback at each scrape. */
interface CollectedMetric<L extends string> {
  collectFrom(source: () => Iterable<Sample<L>>): void
}

/** The limiter's metrics. */
export interface LimiterMetrics {
  readonly ruleTotalHits: CollectedMetric<RuleLabel>
  readonly ruleOverLimit: CollectedMetric<RuleLabel>
  readonly ruleNearLimit: CollectedMetric<RuleLabel>
  readonly ruleOverLimitWithLocalCache: CollectedMetric<RuleLabel>
  readonly ruleWithinLimit: CollectedMetric<RuleLabel>
  readonly ruleShadowMode: CollectedMetric<RuleLabel>
  readonly domainNotFound: CollectedMetric<'domain'>
  readonly shouldRateLimitErrors: CollectedMetric<'err_type'>
  readonly limiterRequests: CollectedMetric<'grpc_method'>
  readonly configLoadSuccess: CollectedMetric<never>
  readonly configLoadError: CollectedMetric<never>
  readonly globalShadowMode: CollectedMetric<never>
}

/** Connects the metrics to `stats`. */
export function connectMetrics(stats: RuleStats, metrics: LimiterMetrics): void {
  const { service } = stats
  const ruleMetrics: readonly (readonly [CounterName, CollectedMetric<RuleLabel>])[] = [
    ['total_hits', metrics.ruleTotalHits],
    ['over_limit', metrics.ruleOverLimit],
    ['near_limit', metrics.ruleNearLimit],
    ['over_limit_with_local_cache', metrics.ruleOverLimitWithLocalCache],
    ['within_limit', metrics.ruleWithinLimit],
    ['shadow_mode', metrics.ruleShadowMode],
  ]
  for (const [counter, metric] of ruleMetrics) {
    metric.collectFrom(() =>
      stats.listCounters().map((rule) => ({ labels: labelsOf(rule), value: rule[counter] })),
    )
  }
  metrics.domainNotFound.collectFrom(() =>
    stats.listUnknownDomains().map(([domain, value]) => ({ labels: { domain }, value })),
  )
  metrics.shouldRateLimitErrors.collectFrom(() => [
    { labels: { err_type: 'redis_error' }, value: service.redisError },
    { labels: { err_type: 'service_error' }, value: service.serviceError },
  ])
  metrics.limiterRequests.collectFrom(() => [
    { labels: { grpc_method: 'ShouldRateLimit' }, value: service.totalRequests },
  ])
  const connectOne = (metric: CollectedMetric<never>, counter: keyof ServiceCounts) => {
    metric.collectFrom(() => [{ labels: {}, value: service[counter] }])
  }
  connectOne(metrics.configLoadSuccess, 'configLoadSuccess')
  connectOne(metrics.configLoadError, 'configLoadError')
  connectOne(metrics.globalShadowMode, 'globalShadowMode')
}

/** Labels as in envoyproxy/ratelimit, which drops further components; `rule` is the whole path. */
function labelsOf({ path }: RuleCounters): Record<RuleLabel, string> {
  const [domain = '', key1 = '', key2 = ''] = path.split('.')
  return { domain, key1, key2, rule: path }
}

const RESPONSE_TIME = 'ratelimit_server.ShouldRateLimit.response_time'

/** Reads all statistics by their statsd names. */
export function readStats(
  stats: RuleStats,
  gauges: () => Readonly<Record<string, number>> = () => ({}),
): StatsReading {
  return {
    counters: countersOf(stats),
    gauges: Object.entries(gauges()),
    timings: [[RESPONSE_TIME, stats.responseTimes]],
  }
}

/** Renders `/stats`: one line per statistic, sorted by name. */
export function renderStats(
  stats: RuleStats,
  gauges: () => Readonly<Record<string, number>> = () => ({}),
): string {
  const { count, ...times } = stats.responseTimes.summary()
  const fields = Object.entries(times).map(([name, ms]) => `${name}=${ms.toFixed(3)}ms`)
  const lines = [
    ...[...countersOf(stats), ...Object.entries(gauges())].map(([name, n]) => `${name}: ${n}`),
    `${RESPONSE_TIME}: count=${count} ${fields.join(' ')}`,
  ]
  return lines
    .sort()
    .map((line) => `${line}\n`)
    .join('')
}

function countersOf(stats: RuleStats): (readonly [name: string, total: number])[] {
  const { service } = stats
  const ofRules = stats
    .listCounters()
    .flatMap((rule) =>
      counterNames.map(
        (counter) =>
          [`ratelimit.service.rate_limit.${rule.path}.${counter}`, rule[counter]] as const,
      ),
    )
  const ofDomains = stats
    .listUnknownDomains()
    .map(([domain, n]) => [`ratelimit.service.rate_limit.${domain}.domain_not_found`, n] as const)
  return [
    ...ofRules,
    ...ofDomains,
    ['ratelimit.service.config_load_success', service.configLoadSuccess],
    ['ratelimit.service.config_load_error', service.configLoadError],
    ['ratelimit.service.global_shadow_mode', service.globalShadowMode],
    ['ratelimit.service.call.should_rate_limit.redis_error', service.redisError],
    ['ratelimit.service.call.should_rate_limit.service_error', service.serviceError],
    ['ratelimit_server.ShouldRateLimit.total_requests', service.totalRequests],
  ]
}
