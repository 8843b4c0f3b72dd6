// The tables of the whole path: the CPU time of each component per redirect, at each rate.
import type { OfferedFigures } from './offered-load.ts'
import type { LoadName } from './path-loads.ts'
import { medianOf, type Report } from './report.ts'

/** `bare`: without limits; `ours`: a call for every redirect; `peer`: the reference limiter. */
export type ContenderName = 'bare' | 'ours' | 'allowance' | 'peer'

/** The figures of one span of load on one contender; `mixed` is the scenario of k6. */
export interface PathSpan<L = LoadName | 'mixed'> {
  readonly contender: ContenderName
  readonly load: L
  /** The number of most requested links that were written into the cache. */
  readonly cachedLinks: number
  readonly redirectsPerSecond: number
  readonly createsPerSecond: number
  readonly redirects: OfferedFigures
  readonly creates?: OfferedFigures
  /** CPU time of each component and of the load generator. */
  readonly cpuUs: Readonly<Record<string, number>>
  /** Calls of its Envoy to the limiter; absent: not counted. */
  readonly limiterCalls?: number
}

const GOAL = 0.9
/** The same for the allowance, by load. */
const GOALS_ALLOWANCE = { public: 0.6, nat: 0.9, zipf: 0.9 } as const
/** The maximum p99 of a rate that counts as carried. */
export const P99_GOAL_MS = 100
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
  readonly spans: readonly PathSpan<LoadName>[]
  readonly conditions: Report['conditions']
}): Report {
  const { spans, conditions } = given
  const groups = [...Map.groupBy(spans, keyOf).values()]
  return {
    bench: 'path',
    conditions,
    ...pathTableOf(groups),
    verdict: [...ratiosOf(spans), ...carriedBy(groups)],
    figures: spans,
  }
}

/** The table of groups of spans, with the medians of each group. */
export function pathTableOf(
  groups: readonly (readonly PathSpan[])[],
): Pick<Report, 'headings' | 'rows'> {
  return {
    headings: [
      ...[
        'contender',
        'load',
        'links in Redis',
        'offered/s',
        'creates/s',
        '302/s',
        '429',
        'other',
        'not sent',
        'calls',
      ],
      ...components.map((component) => `${component} µs`),
      ...['sum µs', 'generator µs', 'p50 ms', 'p99 ms', 'p99.9 ms', 'create p99 ms'],
    ],
    rows: groups.map(rowOf),
  }
}

function keyOf(span: PathSpan): string {
  return `${placeOf(span)} ${span.contender}`
}

/** What spans of different contenders have in common if they are compared. */
function placeOf({ load, cachedLinks, redirectsPerSecond, createsPerSecond }: PathSpan): string {
  return [load, cachedLinks, redirectsPerSecond, createsPerSecond].join(' ')
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
    first.load,
    String(first.cachedLinks),
    String(first.redirectsPerSecond),
    String(first.createsPerSecond),
    median(({ redirects }) => (redirects.statuses[302] ?? 0) / seconds),
    median(({ redirects }) => redirects.statuses[429] ?? 0),
    median(othersOf),
    median(({ redirects }) => redirects.notSent),
    median((span) => (span.limiterCalls ?? Number.NaN) / responsesOf(span), 2),
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
export function sumUsOf(span: PathSpan): number {
  const us = components.reduce((sum, component) => sum + (span.cpuUs[component] ?? 0), 0)
  return us / responsesOf(span)
}

/** CPU time of Envoy per redirect, in µs. */
function envoyUsOf(span: PathSpan): number {
  return (span.cpuUs['envoy'] ?? 0) / responsesOf(span)
}

function ratiosOf(spans: readonly PathSpan<LoadName>[]): string[] {
  const alone = spans.filter(({ createsPerSecond }) => createsPerSecond === 0)
  const lines = [...Map.groupBy(alone, placeOf).values()].flatMap((group) => {
    const of = (name: ContenderName) => group.filter(({ contender }) => contender === name)
    const [bare, ours, allowance, peer] = [of('bare'), of('ours'), of('allowance'), of('peer')]
    const [first] = group
    if (first === undefined) return []
    const { load, redirectsPerSecond, cachedLinks } = first
    const at = `${load}, ${redirectsPerSecond}/s, ${cachedLinks} links in Redis: `
    return [
      ...ratioOf(`${at}a call for every redirect to the peer`, {
        spans: ours,
        to: peer,
        goal: GOAL,
      }),
      ...ratioOf(`${at}the allowance to the peer`, {
        spans: allowance,
        to: peer,
        goal: GOALS_ALLOWANCE[load],
      }),
      ...ratioOf(`${at}the allowance to a call`, { spans: allowance, to: ours, goal: 1 }),
      ...addedBy(`${at}limiting adds to Envoy`, { bare, ours, allowance }),
    ]
  })
  const hasPeer = spans.some(({ contender }) => contender === 'peer')
  return hasPeer ? lines : [...lines, 'No peer: set REFERENCE_RATELIMIT to the reference limiter.']
}

/** The ratio of the summed CPU time per redirect, turn by turn. */
function ratioOf(
  what: string,
  given: { readonly spans: readonly PathSpan[]; readonly to: readonly PathSpan[]; goal: number },
): string[] {
  const { spans, to, goal } = given
  if (spans.length === 0 || to.length === 0) return []
  const ratios = spans.map((span, i) => sumUsOf(span) / sumUsOf(to[i] ?? span))
  const ratio = medianOf(ratios)
  const all = ratios.map((each) => each.toFixed(2)).join(' ')
  const verdict = `goal at most ${goal}: ${ratio <= goal ? 'reached' : 'NOT reached'}`
  return [`${what}, summed CPU per redirect: ${ratio.toFixed(2)} (${all}); ${verdict}`]
}

/** The CPU time that limiting adds in Envoy, as a share of a redirect without limits. */
function addedBy(
  what: string,
  given: Readonly<Record<'bare' | 'ours' | 'allowance', readonly PathSpan[]>>,
): string[] {
  const { bare, ours, allowance } = given
  if (bare.length === 0) return []
  const share = (spans: readonly PathSpan[]) => {
    const shares = spans.map((span, i) => envoyUsOf(span) / envoyUsOf(bare[i] ?? span) - 1)
    return `${(100 * medianOf(shares)).toFixed(0)} %`
  }
  return [`${what}: ${share(ours)} with a call, ${share(allowance)} with the allowance`]
}

/** Whether at least this share of the due redirects succeeded, with p99 under its maximum. */
export function isCarried({ redirects }: PathSpan, share: number): boolean {
  const { statuses, due, p99Ms } = redirects
  return (statuses[302] ?? 0) >= share * due && p99Ms < P99_GOAL_MS
}

function carriedBy(groups: readonly (readonly PathSpan[])[]): string[] {
  const carried = groups.filter((group) =>
    group.every((span) => {
      const isCompared = span.createsPerSecond === 0 && span.contender !== 'peer'
      return isCompared && isCarried(span, CARRIED_SHARE)
    }),
  )
  const spans = carried.flatMap((group) => group.slice(0, 1))
  const nameOf = ({ contender, load, cachedLinks }: PathSpan) =>
    `${contender}, ${load}, ${cachedLinks} links in Redis`
  return [...Map.groupBy(spans, nameOf)].map(([name, each]) => {
    const rate = Math.max(...each.map(({ redirectsPerSecond }) => redirectsPerSecond))
    return `${name}: highest rate carried in every turn with p99 under ${P99_GOAL_MS} ms: ${rate}/s`
  })
}
