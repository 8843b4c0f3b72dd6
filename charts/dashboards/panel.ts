// What a panel and a dashboard are, in our words, and short ways to write their queries. Knows no
// Grafana.
import { type Matchers, type OurMetric, type SeriesNames, seriesOf } from './series.ts'

/** A panel: what it shows, and why one looks at it. */
export interface Panel {
  readonly title: string
  readonly description: string
  /** As Grafana names units. */
  readonly unit: 'reqps' | 's' | 'ms' | 'percentunit' | 'short' | 'bytes' | 'ops' | 'd'
  /** One number in place of a line over time. */
  readonly isNumber?: boolean
  readonly queries: readonly Query[]
}

/** An expression, and what its lines are called. */
export interface Query {
  readonly expr: string
  readonly legend: string
  /** Whether single observations are shown too, which lead to their traces. */
  readonly hasExemplars?: boolean
}

/** A dashboard. */
export interface Board {
  /** Also the name of its file. */
  readonly name: string
  readonly title: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}

/** Series of the release that is chosen at the top of a dashboard. */
export const chosen: SeriesNames = seriesOf('namespace="$namespace",pod=~"$release-.*"')

/** How many a second, by these labels; 0 where nothing has been counted yet. */
export function rateBy(series: string, labels: readonly string[] = []): Query {
  const by = labels.length === 0 ? '' : ` by (${labels.join(', ')})`
  const legend = labels.map((label) => `{{${label}}}`).join(' ')
  return {
    expr: `sum${by} (rate(${series}[$__rate_interval])) or vector(0)`,
    legend: legend === '' ? 'all' : legend,
  }
}

/** The time within which this part of all was done, by these labels. */
export function quantile(part: number, buckets: string, labels: readonly string[] = []): Query {
  const by = ['le', ...labels].join(', ')
  const legend = [`p${part * 100}`, ...labels.map((label) => `{{${label}}}`)].join(' ')
  return {
    expr: `histogram_quantile(${part}, sum by (${by}) (rate(${buckets}[$__rate_interval])))`,
    legend,
  }
}

/** p50, p99 and p99.9 of a histogram of the catalogue, with its exemplars once. */
export function times(metric: OurMetric, matchers: Matchers = {}): readonly Query[] {
  const buckets = chosen.ours(metric, matchers, '_bucket')
  const parts = [0.5, 0.99].map((part) => quantile(part, buckets))
  return [...parts, { ...quantile(0.999, buckets), hasExemplars: true }]
}

/** One expression under one name. */
export function line(expr: string, legend: string): Query {
  return { expr, legend }
}
