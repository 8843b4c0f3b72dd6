// The series for which each alert must fire, and then clear. Contains no test.
import { nameOf, type CatalogueMetric } from '../../../charts/dashboards/series.ts'

/** The values of a series, one per step: while the alert must fire, and after the recovery. */
interface CaseSeries {
  readonly series: string
  readonly firing: string
  readonly recovered: string
}

/** The case of one alert. */
export interface AlertCase {
  /** The interval between values, and between evaluations. @default 1 */
  readonly stepMinutes?: number
  /** @default 20 */
  readonly firingMinutes?: number
  /** The time after the recovery within which the alert must clear. @default 40 */
  readonly recoveredMinutes?: number
  readonly series: readonly CaseSeries[]
}

const pod = (name: string) => `namespace="NAMESPACE",pod="RELEASE-${name}-1"`

/** A gauge with two values. */
const gauge = (series: string, firing: number, recovered: number): CaseSeries => ({
  series,
  firing: `${String(firing)}x`,
  recovered: `${String(recovered)}x`,
})
/** A counter with two increments per step. */
const counter = (series: string, firing: number, recovered: number): CaseSeries => ({
  series,
  firing: `0+${String(firing)}x`,
  recovered: `+${String(recovered)}x`,
})

const ours = (
  metric: CatalogueMetric,
  {
    of,
    labels = '',
    suffix = '',
  }: {
    of: string
    labels?: string
    suffix?: string
  },
) => `${nameOf(metric)}${suffix}{${pod(of)}${labels === '' ? '' : `,${labels}`}}`

const edge = (name: string, labels = '') =>
  `envoy_${name}{${pod('edge')}${labels === '' ? '' : `,${labels}`}}`

const responses = (cluster: string, group: number) =>
  edge(
    'cluster_upstream_rq_xx',
    `envoy_cluster_name="${cluster}",envoy_response_code_class="${String(group)}"`,
  )
const latencies = (suffix: string, labels = '') =>
  edge(`cluster_upstream_rq_time_${suffix}`, `envoy_cluster_name="redirect"${labels}`)

/** 10,000 redirects a minute, of which `failed` fail and `slow` exceed the latency objective. */
function redirects({ failed, slow }: { failed: number; slow: number }): CaseSeries[] {
  const all = 10_000
  return [
    counter(responses('redirect', 3), all - failed, all),
    counter(responses('redirect', 5), failed, 0),
    counter(latencies('count'), all, all),
    counter(latencies('bucket', ',le="100"'), all - slow, all),
  ]
}

/** 10,000 creates a minute, of which `failed` fail at the edge. */
function creates(failed: number): CaseSeries[] {
  return [
    counter(ours('creates', { of: 'create', labels: 'result="created"' }), 10_000 - failed, 10_000),
    counter(responses('create', 5), failed, 0),
  ]
}

const pool = 'pool="default"'
const level = ours('poolLevel', { of: 'create', labels: pool })
const jobs = (result: string) =>
  ours('refillJobs', { of: 'controller', labels: `result="${result}"` })
const calls = (result: string) =>
  ours('cassandraCallSeconds', {
    of: 'create',
    labels: `statement="lwt",result="${result}"`,
    suffix: '_count',
  })
const lag = (le: string) =>
  ours('loopLagSeconds', { of: 'redirect', suffix: '_bucket', labels: `le="${le}"` })

const info = (role: string) => ours('buildInfo', { of: role, labels: `role="${role}"` })
const HOUR = 60

const conditions = (labels: string) => ours('policyConditions', { of: 'controller', labels })

/** A limiter that is cut off, and a controller that has dropped it from its number of limiters. */
export const disconnectedLimiter: AlertCase = {
  series: [
    gauge(conditions('type="Programmed",status="True",reason="Programmed"'), 3, 3),
    gauge(info('ratelimit'), 1, 1),
    gauge(ours('xdsConnected', { of: 'ratelimit' }), 0, 1),
    // Exported by every role, but only limiters connect.
    gauge(ours('xdsConnected', { of: 'create' }), 0, 0),
  ],
}

const listed = (of: string) => ours('listEntries', { of, labels: 'list="blocked-targets"' })
const listFaults = ours('listFaults', { of: 'create', labels: 'list="api-keys"' })

/**
 * A redirect pod applies no change of a list that changes every minute, or then each change a
 * minute after the others; no line is faulty.
 */
export const outdatedList: AlertCase = {
  series: [
    { series: listed('create'), firing: '100+1x', recovered: '121+1x' },
    { series: listed('redirect'), firing: '100x', recovered: '120+1x' },
    gauge(ours('listEntries', { of: 'create', labels: 'list="api-keys"' }), 7, 7),
    gauge(listFaults, 0, 0),
  ],
}

/** The cases by alert. */
export const alertCases = {
  CurtailRedirectBurnFast: {
    ...{ firingMinutes: 70, recoveredMinutes: 60 },
    series: redirects({ failed: 0, slow: 200 }),
  },
  CurtailRedirectBurnSlow: {
    ...{ stepMinutes: 10, firingMinutes: 30 * HOUR, recoveredMinutes: 13 * HOUR },
    series: redirects({ failed: 25, slow: 0 }),
  },
  CurtailCreateBurnFast: {
    ...{ firingMinutes: 70, recoveredMinutes: 60 },
    series: creates(300),
  },
  CurtailCreateBurnSlow: {
    ...{ stepMinutes: 10, firingMinutes: 30 * HOUR, recoveredMinutes: 13 * HOUR },
    series: creates(50),
  },
  CurtailPoolEmpty: { series: [gauge(level, 0, 50_000)] },
  CurtailPoolRunningOut: {
    firingMinutes: 90,
    series: [
      gauge(level, 100_000, 2_000_000),
      counter(ours('poolClaimed', { of: 'create', labels: pool }), 1, 1),
    ],
  },
  CurtailRefillFailing: {
    series: [counter(jobs('failed'), 1, 0), counter(jobs('succeeded'), 0, 1)],
  },
  CurtailPoolDegraded: {
    series: [
      gauge(
        ours('poolConditions', {
          of: 'controller',
          labels: 'type="Degraded",status="True",reason="JobFailed"',
        }),
        ...([1, 0] as const),
      ),
    ],
  },
  CurtailPoliciesNotProgrammed: {
    series: [gauge(conditions('type="Programmed",status="False",reason="Pending"'), 3, 0)],
  },
  CurtailLimiterUnavailable: {
    series: [
      counter(edge('cluster_ratelimit_ok', 'envoy_cluster_name="redirect"'), 900, 1000),
      counter(edge('cluster_ratelimit_error', 'envoy_cluster_name="redirect"'), 100, 0),
    ],
  },
  CurtailLimiterFallback: {
    series: [gauge(ours('limiterStoreUnavailable', { of: 'ratelimit' }), 1, 0)],
  },
  CurtailRulesRejected: { series: [counter(ours('configLoadError', { of: 'ratelimit' }), 1, 0)] },
  CurtailLimiterWithoutRules: {
    series: [
      gauge(ours('limiterDomains', { of: 'ratelimit' }), 0, 1),
      gauge(info('ratelimit'), 1, 1),
      gauge(ours('limiterDomains', { of: 'create' }), 0, 0),
      gauge(info('create'), 1, 1),
    ],
  },
  CurtailDomainWithoutRules: {
    series: [counter(ours('domainNotFound', { of: 'ratelimit', labels: 'domain="edge"' }), 9, 0)],
  },
  CurtailListNotApplied: { series: [gauge(listFaults, 2, 0)] },
  CurtailStoreUnavailable: {
    series: [gauge(ours('cassandraMajority', { of: 'create' }), 0, 1), gauge(info('create'), 1, 1)],
  },
  CurtailStoreDegraded: {
    series: [counter(calls('ok'), 95, 100), counter(calls('unknown'), 5, 0)],
  },
  CurtailStaleRedirects: {
    series: [
      counter(
        ours('lookups', { of: 'redirect', labels: 'tier="stale",result="hit"' }),
        ...([5, 0] as const),
      ),
    ],
  },
  CurtailCacheUnavailable: {
    series: [gauge(ours('linkCacheUnavailable', { of: 'redirect' }), 1, 0)],
  },
  CurtailCacheInvalidationStuck: {
    series: [gauge(ours('linkCacheInvalidationsQueued', { of: 'create' }), 3, 0)],
  },
  CurtailNoHealthyPods: {
    series: [gauge(edge('cluster_membership_healthy', 'envoy_cluster_name="redirect"'), 0, 2)],
  },
  CurtailEdgeOverloaded: {
    series: [gauge(edge('overload_envoy_overload_actions_stop_accepting_requests_active'), 1, 0)],
  },
  CurtailCertificateExpiring: {
    firingMinutes: 2 * HOUR,
    series: [gauge(edge('server_days_until_first_cert_expiring'), 5, 89)],
  },
  CurtailControllerWithoutLeader: {
    series: [gauge(ours('isLeader', { of: 'controller' }), 0, 1)],
  },
  CurtailWatchFailing: {
    series: [
      gauge(
        ours('failingCaches', { of: 'controller', labels: 'resource="ratelimitpolicies"' }),
        ...([2, 0] as const),
      ),
    ],
  },
  CurtailReconcileErrors: {
    firingMinutes: 40,
    series: [
      counter(
        ours('reconcileErrors', { of: 'controller', labels: 'controller="codepool"' }),
        ...([1, 0] as const),
      ),
    ],
  },
  CurtailEventLoopSlow: {
    series: [
      counter(lag('0.1'), 2900, 3000),
      counter(lag('0.25'), 3000, 3000),
      counter(lag('+Inf'), 3000, 3000),
    ],
  },
  CurtailPodNotScraped: { series: [gauge(`up{${pod('edge')}}`, 0, 1)] },
} satisfies Readonly<Record<string, AlertCase>>
