// The table of the whole path: the CPU time of each component per redirect, at each rate.
import type { OfferedFigures } from './offered-load.ts'
import { medianOf, type Report } from './report.ts'

/** The figures of one span of load on one contender. */
export interface PathSpan {
  readonly contender: 'ours' | 'peer'
  /** The number of most requested links that were written into the cache. */
  readonly cachedLinks: number
  readonly redirectsPerSecond: number
  readonly createsPerSecond: number
  readonly redirects: OfferedFigures
  readonly creates?: OfferedFigures
  /** CPU time of each component and of the load generator. */
  readonly cpuUs: Readonly<Record<string, number>>
}

const GOAL = 0.9
const P99_GOAL_MS = 100
/** The minimum share of redirects in the due requests at which a rate counts as carried. */
const CARRIED_SHARE = 0.999
const components = [
  'envoy',
  'limiter',
  'counters',
  'redirect',
  'cache',
  'create',
  'cassandra',
] as const

/** The report, with ratios if there is a peer. */
export function pathReportOf(given: {
  readonly spans: readonly PathSpan[]
  readonly conditions: Report['conditions']
}): Report {
  const { spans, conditions } = given
  const groups = [...Map.groupBy(spans, keyOf).values()]
  return {
    bench: 'path',
    conditions,
    headings: [
      ...[
        'contender',
        'links in Redis',
        'offered/s',
        'creates/s',
        '302/s',
        '429',
        'other',
        'not sent',
      ],
      ...components.map((component) => `${component} µs`),
      ...['sum µs', 'generator µs', 'p50 ms', 'p99 ms', 'p99.9 ms', 'create p99 ms'],
    ],
    rows: groups.map(rowOf),
    verdict: [...ratiosOf(spans), ...carriedBy(groups)],
    figures: spans,
  }
}

function keyOf(span: PathSpan): string {
  const { cachedLinks, redirectsPerSecond, createsPerSecond, contender } = span
  return [cachedLinks, redirectsPerSecond, createsPerSecond, contender].join(' ')
}

function rowOf(group: readonly PathSpan[]): string[] {
  const [first] = group
  if (first === undefined) return []
  const median = (figure: (span: PathSpan) => number, digits = 0) =>
    medianOf(group.map(figure)).toFixed(digits)
  const seconds = first.redirects.due / first.redirectsPerSecond
  const componentUs = (component: string) => (span: PathSpan) =>
    (span.cpuUs[component] ?? 0) / responsesOf(span)
  const hasCreates = first.creates !== undefined
  return [
    first.contender,
    String(first.cachedLinks),
    String(first.redirectsPerSecond),
    String(first.createsPerSecond),
    median(({ redirects }) => (redirects.statuses[302] ?? 0) / seconds),
    median(({ redirects }) => redirects.statuses[429] ?? 0),
    median(othersOf),
    median(({ redirects }) => redirects.notSent),
    ...components.map((name) => (name in first.cpuUs ? median(componentUs(name), 1) : '')),
    median(sumUsOf, 1),
    median(componentUs('generator'), 1),
    median(({ redirects }) => redirects.p50Ms, 1),
    median(({ redirects }) => redirects.p99Ms, 1),
    median(({ redirects }) => redirects.p999Ms, 1),
    hasCreates ? median(({ creates }) => creates?.p99Ms ?? Number.NaN, 1) : '',
  ]
}

function responsesOf({ redirects }: PathSpan): number {
  return Object.values(redirects.statuses).reduce((sum, count) => sum + count, 0)
}

function othersOf(span: PathSpan): number {
  const { 302: redirected = 0, 429: limited = 0 } = span.redirects.statuses
  return responsesOf(span) - redirected - limited + span.redirects.lost
}

/** CPU µs per redirect, summed over all components except the generator. */
function sumUsOf(span: PathSpan): number {
  const us = components.reduce((sum, component) => sum + (span.cpuUs[component] ?? 0), 0)
  return us / responsesOf(span)
}

function ratiosOf(spans: readonly PathSpan[]): string[] {
  const peers = spans.filter(({ contender }) => contender === 'peer')
  if (peers.length === 0) return ['No peer: set REFERENCE_RATELIMIT to the reference limiter.']
  return [...Map.groupBy(peers, keyOf).values()].map((group) => {
    const { cachedLinks = 0, redirectsPerSecond = 0 } = group[0] ?? {}
    const ours = spans.filter((span) => {
      return (
        span.contender === 'ours' &&
        span.createsPerSecond === 0 &&
        span.cachedLinks === cachedLinks &&
        span.redirectsPerSecond === redirectsPerSecond
      )
    })
    const ratios = group.map((peer, i) => {
      const span = ours[i]
      return span === undefined ? Number.NaN : sumUsOf(span) / sumUsOf(peer)
    })
    const ratio = medianOf(ratios)
    const all = ratios.map((each) => each.toFixed(2)).join(' ')
    return (
      `At ${redirectsPerSecond}/s, ${cachedLinks} links in Redis, summed CPU per redirect, ` +
      `ours to the peer: ${ratio.toFixed(2)} (${all}); ` +
      `goal at most ${GOAL}: ${ratio <= GOAL ? 'reached' : 'NOT reached'}`
    )
  })
}

function carriedBy(groups: readonly (readonly PathSpan[])[]): string[] {
  const carried = groups.filter((group) =>
    group.every((span) => {
      const isOurs = span.contender === 'ours' && span.createsPerSecond === 0
      const { statuses, due, p99Ms } = span.redirects
      return isOurs && (statuses[302] ?? 0) >= CARRIED_SHARE * due && p99Ms < P99_GOAL_MS
    }),
  )
  const spans = carried.flatMap((group) => group.slice(0, 1))
  return [...Map.groupBy(spans, ({ cachedLinks }) => cachedLinks)].map(([cachedLinks, each]) => {
    const rate = Math.max(...each.map(({ redirectsPerSecond }) => redirectsPerSecond))
    return (
      `Highest offered rate carried in every turn with p99 under ${P99_GOAL_MS} ms, ` +
      `${cachedLinks} links in Redis: ${rate}/s`
    )
  })
}
