// How alerts and dashboards name series: by the catalogue of metrics, so that one that is renamed
// or removed does not compile here, and by the names of Envoy’s that are listed here. Asks nobody.
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'

const metrics = createMetrics()

/** A metric of the catalogue. */
export type OurMetric = Exclude<keyof Metrics, 'registry'>

/** Names of Envoy's that are used, without their `envoy_`. A test finds each at a real Envoy. */
export const edgeMetrics = {
  answers: 'cluster_upstream_rq_xx',
  answerMs: 'cluster_upstream_rq_time',
  retries: 'cluster_upstream_rq_retry',
  timeouts: 'cluster_upstream_rq_timeout',
  healthyPods: 'cluster_membership_healthy',
  ejected: 'cluster_outlier_detection_ejections_active',
  limiterOk: 'cluster_ratelimit_ok',
  limiterOver: 'cluster_ratelimit_over_limit',
  limiterSilent: 'cluster_ratelimit_error',
  localRefused: 'http_local_rate_limit_rate_limited',
  clientAnswers: 'http_downstream_rq_xx',
  clientMs: 'http_downstream_rq_time',
  connections: 'http_downstream_cx_active',
  refusedRequests: 'overload_envoy_overload_actions_stop_accepting_requests_active',
  heapPressure: 'overload_envoy_resource_monitors_fixed_heap_pressure',
  daysOfCertificate: 'server_days_until_first_cert_expiring',
} as const

/** A metric of Envoy's. */
type EdgeMetric = keyof typeof edgeMetrics

/** Metrics of Node.js and of Prometheus itself that are used. */
export const otherMetrics = {
  up: 'up',
  cpuSeconds: 'process_cpu_seconds_total',
  memoryBytes: 'process_resident_memory_bytes',
} as const

/** Labels that a series must have: `'5..'` behind `~` is a pattern. */
export type Matchers = Readonly<Record<string, string>>

/** Which histogram's part is meant. */
type Part = '' | '_bucket' | '_count' | '_sum'

/** Names series of one installation. */
export interface SeriesNames {
  readonly ours: (metric: OurMetric, matchers?: Matchers, part?: Part) => string
  readonly edge: (metric: EdgeMetric, matchers?: Matchers, part?: Part) => string
  readonly other: (metric: keyof typeof otherMetrics, matchers?: Matchers) => string
}

/** Series of the pods that `scope` finds, such as `namespace="shop",pod=~"shop-.*"`. */
export function seriesOf(scope: string): SeriesNames {
  const select = (name: string, matchers: Matchers = {}) => {
    const own = Object.entries(matchers).map(([label, value]) =>
      value.startsWith('~') ? `${label}=~"${value.slice(1)}"` : `${label}="${value}"`,
    )
    return `${name}{${[scope, ...own].join(',')}}`
  }
  return {
    ours: (metric, matchers, part = '') => select(`${nameOf(metric)}${part}`, matchers),
    edge: (metric, matchers, part = '') => select(`envoy_${edgeMetrics[metric]}${part}`, matchers),
    other: (metric, matchers) => select(otherMetrics[metric], matchers),
  }
}

/** Its name in the catalogue. */
export function nameOf(metric: OurMetric): string {
  return (metrics[metric] as unknown as { readonly name: string }).name
}
