// The catalogue of metrics. A test checks that docs/metrics.md lists exactly these names. Labels
// have few values: never a code, an address or a path.
import { Registry, collectDefaultMetrics } from 'prom-client'
import { controllerMetrics } from './controller-metrics.ts'
import { linkCacheMetrics } from './link-cache-metrics.ts'
import { listMetrics } from './list-metrics.ts'
import { watchLoopLag } from './loop-lag.ts'
import { type MetricFactory, createMetricFactory } from './metric-factory.ts'

const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const CALL_BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05, 0.1, 1]
const LAG_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const GROUP_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

function linkMetrics({ counter, histogram }: MetricFactory) {
  return {
    requestSeconds: histogram(
      'curtail_http_request_duration_seconds',
      'Time from the headers of a request to the end of its response, by route and status.',
      { buckets: LATENCY_BUCKETS, labelNames: ['route', 'status'], hasExemplars: true },
    ),
    lookups: counter(
      'curtail_link_lookups_total',
      'Reads of a tier during lookups of codes, by tier and result.',
      ['tier', 'result'],
    ),
    requestsLimited: counter(
      'curtail_http_requests_limited_total',
      'Requests rejected by a rate limit, by rule.',
      ['rule'],
    ),
    creates: counter('curtail_creates_total', 'Requests to create a link, by result.', ['result']),
    reports: counter('curtail_reports_total', 'Reports of abuse that were stored, by reason.', [
      'reason',
    ]),
  }
}

function codeMetrics({ counter, gauge }: MetricFactory) {
  return {
    claims: counter(
      'curtail_code_claims_total',
      'Claims of a code in the store, by result; unknown-resolved: unknown until re-read.',
      ['result'],
    ),
    blocksClaimed: counter(
      'curtail_pool_blocks_claimed_total',
      'Blocks of codes that this process claimed.',
      ['pool'],
    ),
    codesMinted: counter('curtail_pool_codes_minted_total', 'Codes that this process generated.', [
      'pool',
    ]),
    poolLevel: gauge(
      'curtail_pool_level_codes',
      'Codes left in the pool: generated and not yet claimed.',
      ['pool'],
    ),
    poolClaimed: gauge(
      'curtail_pool_last_claimed_block',
      'The number of the last block of the pool that any process claimed.',
      ['pool'],
    ),
    poolLowWater: gauge(
      'curtail_pool_low_water_codes',
      'The level below which the pool is refilled.',
      ['pool'],
    ),
  }
}

const RULE_LABELS = ['domain', 'key1', 'key2', 'rule'] as const

/** Metrics that start with `ratelimit_` have envoyproxy/ratelimit's names and meaning. */
function limiterMetrics({ collected, counter, gauge, histogram }: MetricFactory) {
  const ruleCounter = (name: string, help: string) =>
    collected(`ratelimit_service_rate_limit_${name}`, `By rule: ${help}.`, RULE_LABELS)
  return {
    ruleTotalHits: ruleCounter('total_hits', 'hits requested'),
    ruleOverLimit: ruleCounter('over_limit', 'hits that exceed the limit'),
    ruleNearLimit: ruleCounter('near_limit', 'hits within the limit, but near it'),
    ruleOverLimitWithLocalCache: ruleCounter(
      'over_limit_with_local_cache',
      'hits denied by the deny cache, without Redis',
    ),
    ruleWithinLimit: ruleCounter('within_limit', 'hits within the limit'),
    ruleShadowMode: ruleCounter(
      'shadow_mode',
      'hits that exceed the limit of a rule in shadow mode',
    ),
    domainNotFound: collected(
      'ratelimit_service_rate_limit_domain_not_found',
      'Calls for a domain without rules.',
      ['domain'],
    ),
    shouldRateLimitErrors: collected(
      'ratelimit_service_should_rate_limit_error',
      'Calls without a response from Redis, and calls that failed.',
      ['err_type'],
    ),
    limiterRequests: collected('ratelimit_service_total_requests', 'Calls over gRPC.', [
      'grpc_method',
    ]),
    limiterCallSeconds: histogram(
      'ratelimit_service_response_time_seconds',
      'Time of a call over gRPC, by its code.',
      { buckets: CALL_BUCKETS, labelNames: ['grpc_method', 'code'], hasExemplars: true },
    ),
    configLoadSuccess: collected(
      'ratelimit_service_config_load_success',
      'Sets of rules that were loaded.',
    ),
    configLoadError: collected(
      'ratelimit_service_config_load_error',
      'Sets of rules that were rejected.',
    ),
    limiterDomains: gauge('curtail_limiter_domains', 'Domains with active rules.'),
    globalShadowMode: collected(
      'ratelimit_service_global_shadow_mode',
      'Calls admitted only because of SHADOW_MODE.',
    ),
    limiterSheds: counter(
      'curtail_limiter_sheds_total',
      'Times that a connection was rejected or closed because it exceeded its share, by resource.',
      ['resource'],
    ),
    limiterDecisions: counter(
      'curtail_limiter_decisions_total',
      'Decisions on limits, by source and result.',
      ['source', 'result'],
    ),
    limiterStoreFailures: counter(
      'curtail_limiter_store_failures_total',
      'Calls to Redis that failed or timed out, by reason.',
      ['reason'],
    ),
    limiterStoreUnavailable: gauge(
      'curtail_limiter_store_unavailable',
      '1 while this process decides without Redis because Redis is unavailable.',
    ),
  }
}

/** Metrics of the xDS server that sends the rules. */
function xdsMetrics({ counter, gauge }: MetricFactory) {
  return {
    xdsConnected: gauge(
      'curtail_xds_connected',
      '1 while this process is connected to the xDS server of its rules.',
    ),
    xdsResponses: counter(
      'curtail_xds_responses_total',
      'Versions of the rules that were accepted (ack) or rejected (nack), by result.',
      ['result'],
    ),
    xdsFailures: counter(
      'curtail_xds_connection_failures_total',
      'Failed connections to the xDS server, and closed streams, by reason.',
      ['reason'],
    ),
  }
}

function cassandraMetrics({ counter, gauge, histogram }: MetricFactory) {
  return {
    cassandraCallSeconds: histogram(
      'curtail_cassandra_call_duration_seconds',
      'Time of one statement over all its attempts, by kind and result.',
      { buckets: LATENCY_BUCKETS, labelNames: ['statement', 'result'], hasExemplars: true },
    ),
    cassandraResponseSeconds: histogram(
      'curtail_cassandra_response_duration_seconds',
      'Time until a node responded to one attempt.',
      { buckets: LATENCY_BUCKETS },
    ),
    cassandraErrors: counter(
      'curtail_cassandra_errors_total',
      'Attempts that failed in the driver, by reason.',
      ['reason'],
    ),
    cassandraRetries: counter(
      'curtail_cassandra_retries_total',
      'Attempts that the driver retried, by reason.',
      ['reason'],
    ),
    cassandraSpeculativeExecutions: counter(
      'curtail_cassandra_speculative_executions_total',
      'Reads sent to a second replica because the first was slow.',
    ),
    cassandraMajority: gauge(
      'curtail_cassandra_majority',
      '1 while a majority of replicas responds to this process.',
    ),
    cassandraNodeChanges: counter(
      'curtail_cassandra_node_changes_total',
      'Nodes that came up or went down, as observed by this process.',
      ['state'],
    ),
    cassandraHosts: gauge('curtail_cassandra_hosts', 'Nodes that this process is connected to.'),
    cassandraConnections: gauge('curtail_cassandra_connections', 'Connections to nodes.'),
    cassandraInFlight: gauge(
      'curtail_cassandra_in_flight_requests',
      'Requests in flight to nodes.',
    ),
  }
}

function processMetrics({ counter, gauge, histogram }: MetricFactory) {
  return {
    backgroundFailures: counter(
      'curtail_background_failures_total',
      'Runs of a background task that failed.',
      ['task'],
    ),
    linksPurged: counter(
      'curtail_links_purged_total',
      'Records deleted because they had expired more than 31 days ago.',
    ),
    sqliteGroup: histogram(
      'curtail_sqlite_group_operations',
      'Writes that shared one durable transaction.',
      { buckets: GROUP_BUCKETS },
    ),
    sqliteCommitSeconds: histogram(
      'curtail_sqlite_commit_duration_seconds',
      'Time of one durable transaction, sync included.',
      { buckets: LATENCY_BUCKETS },
    ),
    loopLagSeconds: histogram(
      'curtail_event_loop_lag_seconds',
      'Delay of the event loop, measured every 100 ms.',
      { buckets: LAG_BUCKETS },
    ),
    buildInfo: gauge('curtail_build_info', 'Always 1; the labels describe the program.', [
      'version',
      'node',
      'role',
    ]),
  }
}

/** Creates the metrics of one process in a new registry. */
export function createMetrics() {
  const registry = new Registry()
  const factory = createMetricFactory(registry)
  return {
    registry,
    ...linkMetrics(factory),
    ...listMetrics(factory),
    ...linkCacheMetrics(factory),
    ...codeMetrics(factory),
    ...limiterMetrics(factory),
    ...xdsMetrics(factory),
    ...cassandraMetrics(factory),
    ...controllerMetrics(factory),
    ...processMetrics(factory),
  }
}

/** The metrics of one process. Modules declare the subset that they use with `Pick`. */
export type Metrics = ReturnType<typeof createMetrics>

/** prom-client's quantiles of the event loop lag. */
const LAG_QUANTILES = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'] as const
/** The longest period of prom-client's clock: 24 days. */
const CLOCK_MS_MAX = 2 ** 31 - 1

/**
 * Adds prom-client's process metrics (CPU, memory) and measures the event loop lag for the life of
 * the process. prom-client's own quantiles of it are left out: they reset on each scrape, so that
 * each of two scrapers would read only the time since the other's scrape, and they wake an idle
 * process every 10 ms.
 */
export function collectProcessMetrics(metrics: Pick<Metrics, 'registry' | 'loopLagSeconds'>): void {
  const { registry } = metrics
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: CLOCK_MS_MAX })
  for (const quantile of LAG_QUANTILES)
    registry.removeSingleMetric(`nodejs_eventloop_lag_${quantile}_seconds`)
  const lag = metrics.loopLagSeconds.labels()
  const observe = (seconds: number) => {
    lag.observe(seconds)
  }
  watchLoopLag({ nowMs: () => performance.now(), observe })
}
