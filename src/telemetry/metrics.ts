// The catalogue of metrics. docs/metrics.md lists the same names, and a test compares both ways.
// Labels take few values: never a code, an address or a path.
import { Registry, collectDefaultMetrics } from 'prom-client'
import { controllerMetrics } from './controller-metrics.ts'
import { watchLoopLag } from './loop-lag.ts'
import { type Makers, makersOf } from './metric-makers.ts'

const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const CALL_BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05, 0.1, 1]
const LAG_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const GROUP_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

function linkMetrics({ counter, histogram }: Makers) {
  return {
    requestSeconds: histogram(
      'curtail_http_request_duration_seconds',
      'Time from a request’s head to the end of its answer, by route and status.',
      { buckets: LATENCY_BUCKETS, labelNames: ['route', 'status'], hasExemplars: true },
    ),
    lookups: counter(
      'curtail_link_lookups_total',
      'Look-ups of a code, by the tier that answered and what it said.',
      ['tier', 'outcome'],
    ),
    requestsLimited: counter(
      'curtail_http_requests_limited_total',
      'Requests refused by a limit on clients, by rule.',
      ['rule'],
    ),
    creates: counter('curtail_creates_total', 'Requests to create a link, by outcome.', [
      'outcome',
    ]),
  }
}

function linkCacheMetrics({ counter, gauge }: Makers) {
  return {
    linkCacheFills: counter(
      'curtail_link_cache_fills_total',
      'Entries given to the shared cache of links, by what became of them.',
      ['outcome'],
    ),
    linkCacheFailures: counter(
      'curtail_link_cache_failures_total',
      'Commands of the shared cache of links that failed or came after the deadline.',
      ['why'],
    ),
    linkCacheAway: gauge(
      'curtail_link_cache_away',
      '1 while the shared cache of links is left alone, as it does not answer.',
    ),
    linkCacheInvalid: counter(
      'curtail_link_cache_invalid_entries_total',
      'Entries of the shared link cache that failed verification and were dropped, by reason.',
      ['reason'],
    ),
    linkForgetsQueued: gauge(
      'curtail_link_forgets_queued',
      'Changed links that the shared cache has not confirmed yet to have forgotten.',
    ),
    linkForgetsDropped: counter(
      'curtail_link_forgets_dropped_total',
      'Changed links that were given up, as too many waited for the shared cache.',
    ),
  }
}

function codeMetrics({ counter, gauge }: Makers) {
  return {
    claims: counter(
      'curtail_code_claims_total',
      'Claims of a code in the store, by outcome; unknown-resolved were unknown and then learnt.',
      ['outcome'],
    ),
    blocksClaimed: counter(
      'curtail_pool_blocks_claimed_total',
      'Blocks of codes that this process claimed.',
      ['pool'],
    ),
    codesMinted: counter('curtail_pool_codes_minted_total', 'Codes that this process minted.', [
      'pool',
    ]),
    poolLevel: gauge(
      'curtail_pool_level_codes',
      'Codes left in the pool: minted and not yet claimed.',
      ['pool'],
    ),
    poolClaimed: gauge(
      'curtail_pool_claimed_blocks',
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

/** Those that begin with `ratelimit_` have envoyproxy/ratelimit's names and meaning. */
function limiterMetrics({ collected, counter, gauge, histogram }: Makers) {
  const ofRule = (name: string, help: string) =>
    collected(`ratelimit_service_rate_limit_${name}`, `Of each rule: ${help}.`, RULE_LABELS)
  return {
    ruleTotalHits: ofRule('total_hits', 'hits that were asked for'),
    ruleOverLimit: ofRule('over_limit', 'hits over the limit'),
    ruleNearLimit: ofRule('near_limit', 'hits within the limit, but near it'),
    ruleOverLimitWithLocalCache: ofRule(
      'over_limit_with_local_cache',
      'hits denied from this process’s memory, without Redis',
    ),
    ruleWithinLimit: ofRule('within_limit', 'hits within the limit'),
    ruleShadowMode: ofRule('shadow_mode', 'hits over the limit of a rule in shadow'),
    domainNotFound: collected(
      'ratelimit_service_rate_limit_domain_not_found',
      'Descriptors of a domain without rules.',
      ['domain'],
    ),
    shouldRateLimitErrors: collected(
      'ratelimit_service_should_rate_limit_error',
      'Calls that Redis did not answer, and calls that could not be decided.',
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
      'Sets of rules that came into force.',
    ),
    configLoadError: collected(
      'ratelimit_service_config_load_error',
      'Sets of rules that were refused.',
    ),
    globalShadowMode: collected(
      'ratelimit_service_global_shadow_mode',
      'Calls let pass by SHADOW_MODE alone.',
    ),
    limiterSheds: counter(
      'curtail_limiter_sheds_total',
      'Times that a connection was held to its share or shed, by what the process holds.',
      ['resource'],
    ),
    limiterDecisions: counter(
      'curtail_limiter_decisions_total',
      'Decisions of limits, by who decided and how.',
      ['by', 'outcome'],
    ),
    limiterStoreFailures: counter(
      'curtail_limiter_store_failures_total',
      'Calls to Redis that failed or came after the deadline.',
      ['why'],
    ),
    limiterStoreAway: gauge(
      'curtail_limiter_store_away',
      '1 while limits are counted in this process, as Redis does not answer.',
    ),
  }
}

function cassandraMetrics({ counter, gauge, histogram }: Makers) {
  return {
    cassandraCallSeconds: histogram(
      'curtail_cassandra_call_duration_seconds',
      'Time of one statement over all its attempts, by its kind and outcome.',
      { buckets: LATENCY_BUCKETS, labelNames: ['statement', 'outcome'], hasExemplars: true },
    ),
    cassandraResponseSeconds: histogram(
      'curtail_cassandra_response_duration_seconds',
      'Time until a node answered one attempt.',
      { buckets: LATENCY_BUCKETS },
    ),
    cassandraErrors: counter(
      'curtail_cassandra_errors_total',
      'Attempts that the driver saw fail, by why.',
      ['why'],
    ),
    cassandraRetries: counter(
      'curtail_cassandra_retries_total',
      'Attempts that the driver repeated, by why.',
      ['why'],
    ),
    cassandraSecondReads: counter(
      'curtail_cassandra_second_reads_total',
      'Reads for which a second replica was asked, as the first was slow.',
    ),
    cassandraMajority: gauge(
      'curtail_cassandra_majority',
      '1 while a majority of replicas responds to this process.',
    ),
    cassandraNodeChanges: counter(
      'curtail_cassandra_node_changes_total',
      'Nodes that came up or went down, as this process sees them.',
      ['state'],
    ),
    cassandraHosts: gauge('curtail_cassandra_hosts', 'Nodes that this process is connected to.'),
    cassandraConnections: gauge('curtail_cassandra_connections', 'Connections to nodes.'),
    cassandraInFlight: gauge(
      'curtail_cassandra_in_flight_requests',
      'Requests that nodes have not answered yet.',
    ),
  }
}

function processMetrics({ counter, gauge, histogram }: Makers) {
  return {
    backgroundFailures: counter(
      'curtail_background_failures_total',
      'Runs of a background task that failed.',
      ['task'],
    ),
    linksPurged: counter(
      'curtail_links_purged_total',
      'Records deleted because they had expired long ago.',
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
      'How late the event loop was, measured every 20 ms.',
      { buckets: LAG_BUCKETS },
    ),
    buildInfo: gauge('curtail_build_info', 'Always 1; the labels say what runs.', [
      'version',
      'node',
      'role',
    ]),
  }
}

/** Makes the metrics of one process in a registry of their own. */
export function createMetrics() {
  const registry = new Registry()
  const makers = makersOf(registry)
  return {
    registry,
    ...linkMetrics(makers),
    ...linkCacheMetrics(makers),
    ...codeMetrics(makers),
    ...limiterMetrics(makers),
    ...cassandraMetrics(makers),
    ...controllerMetrics(makers),
    ...processMetrics(makers),
  }
}

/** The metrics of one process. Rooms ask for the part they use by `Pick`. */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * Adds what Node.js says of the process itself, CPU and memory, and measures the lag of its event
 * loop for as long as it lives: what Node.js says of that begins anew with each scrape, and tells
 * each of two scrapers only of the time since the other's.
 */
export function collectProcessMetrics(metrics: Pick<Metrics, 'registry' | 'loopLagSeconds'>): void {
  collectDefaultMetrics({ register: metrics.registry })
  const lag = metrics.loopLagSeconds.labels()
  const observe = (seconds: number) => {
    lag.observe(seconds)
  }
  watchLoopLag({ nowMs: () => performance.now(), observe })
}
