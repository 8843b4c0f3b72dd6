// The types of panels and dashboards, independent of Grafana, and helpers for their queries.
import { type Matchers, type CatalogueMetric, type SeriesNames, seriesOf } from './series.ts'

/** A panel with its queries. */
export interface Panel {
  readonly title: string
  readonly description: string
  /** A unit of Grafana. */
  readonly unit: 'reqps' | 's' | 'ms' | 'percentunit' | 'short' | 'bytes' | 'ops' | 'd'
  /** A single number instead of a time series. */
  readonly isNumber?: boolean
  readonly queries: readonly Query[]
}

/** An expression and the legend of its series. */
export interface Query {
  readonly expr: string
  readonly legend: string
  /** Whether exemplars are shown, which link to traces. */
  readonly hasExemplars?: boolean
}

/** A dashboard. */
export interface Board {
  /** Also the file name. */
  readonly name: string
  readonly title: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}

/** Series of the release that the dashboard's variables select. */
export const chosen: SeriesNames = seriesOf('namespace="$namespace",pod=~"$release-.*"')

/** The rate per second by these labels; 0 if the series does not exist yet. */
export function rateBy(series: string, labels: readonly string[] = []): Query {
  const by = labels.length === 0 ? '' : ` by (${labels.join(', ')})`
  const legend = labels.map((label) => `{{${label}}}`).join(' ')
  return {
    expr: `sum${by} (rate(${series}[$__rate_interval])) or vector(0)`,
    legend: legend === '' ? 'all' : legend,
  }
}

/** A quantile of a histogram by these labels. */
export function quantile(ratio: number, buckets: string, labels: readonly string[] = []): Query {
  const by = ['le', ...labels].join(', ')
  const legend = [`p${ratio * 100}`, ...labels.map((label) => `{{${label}}}`)].join(' ')
  return {
    expr: `histogram_quantile(${ratio}, sum by (${by}) (rate(${buckets}[$__rate_interval])))`,
    legend,
  }
}

/** p50, p99 and p99.9 of a histogram of the catalogue; exemplars only with p99.9. */
export function times(metric: CatalogueMetric, matchers: Matchers = {}): readonly Query[] {
  const buckets = chosen.ours(metric, matchers, '_bucket')
  const quantiles = [0.5, 0.99].map((ratio) => quantile(ratio, buckets))
  return [...quantiles, { ...quantile(0.999, buckets), hasExemplars: true }]
}

/** A query with a fixed legend. */
export function line(expr: string, legend: string): Query {
  return { expr, legend }
}
