// The two promises (SLO) and the alerts on how fast their budgets burn: over a long window, so that
// it matters, and a short one, so that the alert ends with the trouble. Budgets are of 30 days.
import type { Alert } from './alert.ts'
import { type SeriesNames, seriesOf } from './series.ts'

/** Stands in the rules for a release's namespace and full name; the chart puts them there. */
const NAMESPACE = 'NAMESPACE'
/** As `NAMESPACE`. */
export const RELEASE = 'RELEASE'

/** Series of the release that the chart installs. */
export const released: SeriesNames = seriesOf(`namespace="${NAMESPACE}",pod=~"${RELEASE}-.*"`)

interface Promised {
  readonly name: 'redirect' | 'create'
  /** Part of the answers that may be bad. */
  readonly budget: number
  readonly says: string
  readonly bad: (window: string) => string
  readonly total: (window: string) => string
}

const rate = (series: string, window: string) => `sum(rate(${series}[${window}]))`

const { ours, edge } = released
const redirects = { envoy_cluster_name: 'redirect' }
const failed = { envoy_response_code_class: '5' }
/** Prometheus 3 writes the bound as `100.0`. */
const inTime = edge('answerMs', { ...redirects, le: '~100([.]0)?' }, '_bucket')

/** Wrong and late answers; one that is both counts twice. */
function badRedirects(window: string): string {
  const wrong = rate(edge('answers', { ...redirects, ...failed }), window)
  const all = rate(edge('answerMs', redirects, '_count'), window)
  return `(${wrong} or vector(0)) + (${all} - ${rate(inTime, window)} or vector(0))`
}

/** Failures as the edge saw them: also where no pod is left to count. */
function badCreates(window: string): string {
  const series = edge('answers', { envoy_cluster_name: 'create', ...failed })
  return `(${rate(series, window)} or vector(0))`
}

const promises: readonly Promised[] = [
  {
    name: 'redirect',
    budget: 0.0005,
    says: '99.95 % of redirects are answered right, within 100 ms',
    bad: badRedirects,
    total: (window) => rate(edge('answers', redirects), window),
  },
  {
    name: 'create',
    budget: 0.001,
    says: '99.9 % of creates are answered right',
    bad: badCreates,
    total: (window) => `${rate(ours('creates'), window)} + ${badCreates(window)}`,
  },
]

const MINUTE = 60
const HOUR = 3600
const DAY = 86_400

/** Burn `times` as fast as the budget lasts, over both windows, in seconds. */
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

/** Name of the record of bad answers' part over a window. */
export function recordOf(name: Promised['name'], windowSeconds: number): string {
  return `curtail:${name}_errors:ratio_rate${renderSpan(windowSeconds)}`
}

/** A rule that records an expression under a name. */
export interface Recording {
  readonly record: string
  readonly expr: string
}

/** The records that the alerts and the dashboards read. */
export function burnRecords(): Recording[] {
  const windows = new Set([...fast, ...slow].flatMap(({ long, short }) => [short, long]))
  return promises.flatMap(({ name, bad, total }) =>
    [...windows].map((seconds) => {
      const window = renderSpan(seconds)
      return { record: recordOf(name, seconds), expr: `(${bad(window)}) / (${total(window)})` }
    }),
  )
}

/** The alerts of both promises. */
export function burnAlerts(): Alert[] {
  return promises.flatMap(({ name, budget, says }) => {
    const Name = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
    const part = (seconds: number) => `${recordOf(name, seconds)}{release="${RELEASE}"}`
    const burns = (all: readonly Burn[]) =>
      all
        .map(({ times, long, short }) => {
          const most = `${Number((times * budget).toFixed(6))}`
          return `(${part(long)} > ${most} and ${part(short)} > ${most})`
        })
        .join(' or ')
    const now = 'bad answers now: {{ $value | humanizePercentage }}'
    return [
      {
        ...{ alert: `Curtail${Name}BurnFast`, severity: 'critical', forSpan: '2m' },
        expr: burns(fast),
        summary: `The promise that ${says} breaks within hours; ${now}`,
      },
      {
        ...{ alert: `Curtail${Name}BurnSlow`, severity: 'warning', forSpan: '15m' },
        expr: burns(slow),
        summary: `The promise that ${says} breaks within days; ${now}`,
      },
    ] as const
  })
}

/** Seconds as Prometheus writes them. */
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
