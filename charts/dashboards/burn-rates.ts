// The two service level objectives (SLO) and their burn-rate alerts: a long window for
// significance, and a short one so that the alert resolves with the problem. Error
// budgets are for 30 days.
import type { Alert } from './alert.ts'
import { type SeriesNames, seriesOf } from './series.ts'

/** Placeholder in the rules; the chart replaces it with the release's namespace. */
export const NAMESPACE = 'NAMESPACE'
/** Placeholder in the rules; the chart replaces it with the release's full name. */
export const RELEASE = 'RELEASE'

/** Series of the release, with the placeholders. */
export const releaseSeries: SeriesNames = seriesOf(`namespace="${NAMESPACE}",pod=~"${RELEASE}-.*"`)

interface Objective {
  readonly name: 'redirect' | 'create'
  /** The allowed ratio of bad responses. */
  readonly budget: number
  /** The clause of the alert's summary that follows the ratio of bad responses. */
  readonly summary: string
  readonly bad: (window: string) => string
  readonly total: (window: string) => string
}

const rate = (series: string, window: string) => `sum(rate(${series}[${window}]))`

const { ours, edge } = releaseSeries
const redirects = { envoy_cluster_name: 'redirect' }
const failed = { envoy_response_code_class: '5' }
/** Prometheus 3 renders the bound as `100.0`. */
const fastEnough = edge('responseMs', { ...redirects, le: '~100([.]0)?' }, '_bucket')

/** Failed and slow responses; one that is both counts twice. */
function badRedirects(window: string): string {
  const failures = rate(edge('responses', { ...redirects, ...failed }), window)
  const all = rate(edge('responseMs', redirects, '_count'), window)
  return `(${failures} or vector(0)) + (${all} - ${rate(fastEnough, window)} or vector(0))`
}

/** Failures as counted by the edge, which counts requests even if no create pod is up. */
function badCreates(window: string): string {
  const series = edge('responses', { envoy_cluster_name: 'create', ...failed })
  return `(${rate(series, window)} or vector(0))`
}

const objectives: readonly Objective[] = [
  {
    name: 'redirect',
    budget: 0.0005,
    summary: 'of redirects failed or took longer than 100 ms',
    bad: badRedirects,
    total: (window) => rate(edge('responses', redirects), window),
  },
  {
    name: 'create',
    budget: 0.001,
    summary: 'of requests for new links failed',
    bad: badCreates,
    // If no create pod is up, only the edge counts requests.
    total: (window) => `(${rate(ours('creates'), window)} or vector(0)) + ${badCreates(window)}`,
  },
]

const MINUTE = 60
const HOUR = 3600
const DAY = 86_400

/** The burn rate exceeds `times` over both windows; `long` and `short` are in seconds. */
interface Burn {
  readonly times: number
  readonly long: number
  readonly short: number
}

const fast: readonly Burn[] = [
  { times: 14.4, long: HOUR, short: 5 * MINUTE },
  { times: 6, long: 6 * HOUR, short: 30 * MINUTE },
]
const slow: readonly Burn[] = [
  { times: 3, long: DAY, short: 2 * HOUR },
  { times: 1, long: 3 * DAY, short: 6 * HOUR },
]

/** Name of the recording rule for the ratio of bad responses over a window. */
export function recordOf(name: Objective['name'], windowSeconds: number): string {
  return `curtail:${name}_errors:ratio_rate${renderSpan(windowSeconds)}`
}

/** A recording rule. */
export interface Recording {
  readonly record: string
  readonly expr: string
}

/** The recording rules that the alerts and the dashboards use. */
export function burnRecords(): Recording[] {
  const windows = new Set([...fast, ...slow].flatMap(({ long, short }) => [short, long]))
  return objectives.flatMap(({ name, bad, total }) =>
    [...windows].map((seconds) => {
      const window = renderSpan(seconds)
      return { record: recordOf(name, seconds), expr: `(${bad(window)}) / (${total(window)})` }
    }),
  )
}

/** The burn-rate alerts of both objectives. */
export function burnAlerts(): Alert[] {
  return objectives.flatMap(({ name, budget, summary }) => {
    const Name = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
    const ratio = (seconds: number) => `${recordOf(name, seconds)}{release="${RELEASE}"}`
    const burns = (all: readonly Burn[]) =>
      all
        .map(({ times, long, short }) => {
          const threshold = `${Number((times * budget).toFixed(6))}`
          return `(${ratio(long)} > ${threshold} and ${ratio(short)} > ${threshold})`
        })
        .join(' or ')
    const failing = `{{ $value | humanizePercentage }} ${summary}`
    const rest = `(allowed: ${budget * 100} %): at this rate, the error budget for 30 days`
    return [
      {
        ...{ alert: `Curtail${Name}BurnFast`, severity: 'critical', forSpan: '2m' },
        expr: burns(fast),
        summary:
          `${failing} in the last hour or the last six hours ${rest} ` +
          'will last for at most 5 days',
      },
      {
        ...{ alert: `Curtail${Name}BurnSlow`, severity: 'warning', forSpan: '15m' },
        expr: burns(slow),
        summary:
          `${failing} in the last day or the last three days ${rest} ` +
          'will last for less than 30 days',
      },
    ] as const
  })
}

/** Renders seconds as a Prometheus duration. */
function renderSpan(seconds: number): string {
  for (const [unit, size] of [
    ['d', DAY],
    ['h', HOUR],
    ['m', MINUTE],
  ] as const) {
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`
  }
  return `${Math.round(seconds)}s`
}
