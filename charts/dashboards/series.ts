// Names of series for alerts and dashboards: from the metric catalogue, so that a renamed or
// removed metric fails to compile, and from the list of Envoy's metrics below.
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'

const metrics = createMetrics()

/** A metric of the catalogue. */
export type CatalogueMetric = Exclude<keyof Metrics, 'registry'>

/** Envoy's metrics in use, without the prefix `envoy_`. A test checks each on a real Envoy. */
export const edgeMetrics = {
  responses: 'cluster_upstream_rq_xx',
  responseMs: 'cluster_upstream_rq_time',
  retries: 'cluster_upstream_rq_retry',
  timeouts: 'cluster_upstream_rq_timeout',
  healthyPods: 'cluster_membership_healthy',
  ejected: 'cluster_outlier_detection_ejections_active',
  limiterOk: 'cluster_ratelimit_ok',
  limiterOver: 'cluster_ratelimit_over_limit',
  limiterErrors: 'cluster_ratelimit_error',
  localAdmitted: 'http_local_rate_limit_ok',
  localDenied: 'http_local_rate_limit_enforced',
  clientResponses: 'http_downstream_rq_xx',
  clientMs: 'http_downstream_rq_time',
  connections: 'http_downstream_cx_active',
  rejectedRequests: 'overload_envoy_overload_actions_stop_accepting_requests_active',
  heapPressure: 'overload_envoy_resource_monitors_fixed_heap_pressure',
  certificateDays: 'server_days_until_first_cert_expiring',
} as const

/** A metric of Envoy. */
type EdgeMetric = keyof typeof edgeMetrics

/** Metrics in use of Node.js and of Prometheus itself. */
export const otherMetrics = {
  up: 'up',
  cpuSeconds: 'process_cpu_seconds_total',
  memoryBytes: 'process_resident_memory_bytes',
} as const

/** Label matchers; a value with the prefix `~` is a regular expression, such as `~5..`. */
export type Matchers = Readonly<Record<string, string>>

/** The suffix of a histogram series. */
type Suffix = '' | '_bucket' | '_count' | '_sum'

/** Builds selectors for the series of one installation. */
export interface SeriesNames {
  readonly ours: (metric: CatalogueMetric, matchers?: Matchers, suffix?: Suffix) => string
  readonly edge: (metric: EdgeMetric, matchers?: Matchers, suffix?: Suffix) => string
  readonly other: (metric: keyof typeof otherMetrics, matchers?: Matchers) => string
}

/** Selectors within `scope`, such as `namespace="shop",pod=~"shop-.*"`. */
export function seriesOf(scope: string): SeriesNames {
  const select = (name: string, matchers: Matchers = {}) => {
    const own = Object.entries(matchers).map(([label, value]) =>
      value.startsWith('~') ? `${label}=~"${value.slice(1)}"` : `${label}="${value}"`,
    )
    return `${name}{${[scope, ...own].join(',')}}`
  }
  return {
    ours: (metric, matchers, suffix = '') => select(`${nameOf(metric)}${suffix}`, matchers),
    edge: (metric, matchers, suffix = '') =>
      select(`envoy_${edgeMetrics[metric]}${suffix}`, matchers),
    other: (metric, matchers) => select(otherMetrics[metric], matchers),
  }
}

/** The name of a metric of the catalogue. */
export function nameOf(metric: CatalogueMetric): string {
  return (metrics[metric] as unknown as { readonly name: string }).name
}
