// Exports the limiter's counters with the names of envoyproxy/ratelimit: to statsd, to Prometheus
// and at /stats. Only reads the counters.
import type { Metrics } from '../../telemetry/metrics.ts'
import type { StatsReading } from '../../telemetry/statsd.ts'
import { type CounterName, counterNames, type RuleCounters } from './rule-counters.ts'
import type { RuleStats } from './rule-stats.ts'

/** Connects the metrics to `stats`. */
export function connectMetrics(stats: RuleStats, metrics: Metrics): void {
  const { service } = stats
  const ruleMetrics: readonly (readonly [CounterName, Metrics['ruleTotalHits']])[] = [
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
  for (const counter of ['configLoadSuccess', 'configLoadError', 'globalShadowMode'] as const) {
    metrics[counter].collectFrom(() => [{ labels: {}, value: service[counter] }])
  }
}

/** Labels as in envoyproxy/ratelimit, which drops further components; `rule` is the whole path. */
function labelsOf({ path }: RuleCounters) {
  const [domain = '', key1 = '', key2 = ''] = path.split('.')
  return { domain, key1, key2, rule: path }
}

const RESPONSE_TIME = 'ratelimit_server.ShouldRateLimit.response_time'

/** Reads all statistics by their statsd names. */
export function readStats(stats: RuleStats): StatsReading {
  return { counters: countersOf(stats), timings: [[RESPONSE_TIME, stats.responseTimes]] }
}

/** Renders `/stats`: one line per statistic, sorted by name. */
export function renderStats(stats: RuleStats): string {
  const { count, ...times } = stats.responseTimes.summary()
  const fields = Object.entries(times).map(([name, ms]) => `${name}=${ms.toFixed(3)}ms`)
  const lines = [
    ...countersOf(stats).map(([name, n]) => `${name}: ${n}`),
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
