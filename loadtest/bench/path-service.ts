// The service of the benchmarks `path` and `peak`: the stack with many links, the CPU time of
// its components, and one span of open-loop load.
import { startStack, type Stack, type StackOptions } from '../../test/stack/start-stack.ts'
import type { Edge } from '../../test/stack/start-edge.ts'
import { fillCache, fillLinks, filledCode, readLinks } from './fill-links.ts'
import { offerLoad } from './offered-load.ts'
import type { LoadName, Requests } from './path-loads.ts'
import type { ContenderName, PathSpan } from './path-report.ts'
import { cpuUsOf } from './process-figures.ts'
import { untilSettled } from './until-settled.ts'

/** The number of links, unless a benchmark is given another. */
export const LINKS = 1_000_000
/** The number of links in the cache at first: the most requested tenth. */
export const cachedLinksOf = (links: number) => Math.ceil(links / 10)
/** The connections of the load generator. */
export const CONNECTIONS_MAX = 1024
const WARM_UP_READS = 200_000
/** Enough for all links. */
const CACHE_MEGABYTES = 512
const CODES = 200_000

/** One of the compared services: its port and its processes by component. */
export interface Contender {
  readonly name: ContenderName
  readonly port: number
  readonly pids: Readonly<Record<string, readonly number[]>>
  /** The number of calls of its Envoy to the limiter so far; absent: not counted. */
  readonly limiterCalls?: () => Promise<number>
}

/** The load of one span. */
export interface Offer {
  readonly load: LoadName
  readonly redirectsPerSecond: number
  readonly createsPerSecond: number
  readonly seconds: number
  /** The number of most requested links in the cache. */
  readonly cachedLinks: number
}

/** Starts the stack with the links, the most requested tenth of them in the cache. */
export async function startService(
  options: Pick<StackOptions, 'pods' | 'envoyWorkers'> & {
    readonly links: number
    readonly log: (line: string) => void
  },
): Promise<Stack> {
  const { links, log, ...size } = options
  const stack = await startStack({
    ...size,
    cassandraNodes: 1,
    isProductionJvm: true,
    cacheMegabytes: CACHE_MEGABYTES,
    codes: CODES,
    trustedHops: 1,
    onStep: log,
  })
  try {
    const { contactPoints, port, localDc } = stack.cassandra
    await fillLinks({ contactPoints, port, localDc, count: links, log })
    const from = cachedLinksOf(links)
    await fillCache(stack.cache.port, from)
    await readLinks({ contactPoints, port, localDc, from, to: links, reads: WARM_UP_READS })
    await untilSettled(stack.cassandraNodes, log)
    return stack
  } catch (error) {
    await stack.stop()
    throw error
  }
}

/** The URL of a link at one of the redirect pods. */
export function sampleUrlOf(stack: Stack): string {
  return `http://127.0.0.1:${stack.redirects[0]?.port ?? 0}/${filledCode(0)}`
}

/** An edge of the stack, with everything behind it, as a contender. */
export function contenderOf(name: ContenderName, stack: Stack, edge: Edge): Contender {
  const of = (processes: readonly { pid: () => number }[]) => processes.map((each) => each.pid())
  return {
    name,
    port: edge.port,
    limiterCalls: () => edge.envoy.now().stat('^cluster.ratelimit.upstream_rq_total$'),
    pids: {
      envoy: of([edge.envoy]),
      limiter: of(stack.limiters),
      counters: of([stack.counters]),
      redirect: of(stack.redirects),
      cache: of([stack.cache]),
      create: of(stack.creates),
      cassandra: of(stack.cassandraNodes),
    },
  }
}

/** Runs a load against a contender; resolves to its figures with the resources that it used. */
export async function measureOn<T>(
  contender: Contender,
  run: () => Promise<T>,
): Promise<{ result: T; cpuUs: Record<string, number>; limiterCalls?: number }> {
  const { pids, limiterCalls } = contender
  const cpuUs = () => {
    const sums = Object.entries(pids).map(([name, all]) => {
      return [name, all.reduce((sum, pid) => sum + cpuUsOf(pid), 0)] as const
    })
    return Object.fromEntries([...sums, ['generator', cpuUsOf(process.pid)]])
  }
  const callsBefore = await limiterCalls?.()
  const before = cpuUs()
  const result = await run()
  const after = cpuUs()
  const callsAfter = await limiterCalls?.()
  const spent = Object.entries(after).map(([name, us]) => [name, us - (before[name] ?? 0)] as const)
  const used = { result, cpuUs: Object.fromEntries(spent) }
  if (callsBefore === undefined || callsAfter === undefined) return used
  return { ...used, limiterCalls: callsAfter - callsBefore }
}

/** Offers redirects, and creates if the offer has any, to a contender. */
export async function measureSpan(given: {
  readonly contender: Contender
  readonly offer: Offer
  readonly requests: Requests
}): Promise<PathSpan<LoadName>> {
  const { contender, offer, requests } = given
  const shared = { port: contender.port, seconds: offer.seconds }
  const { result, ...used } = await measureOn(contender, () =>
    Promise.all([
      offerLoad({
        ...shared,
        requestsPerSecond: offer.redirectsPerSecond,
        connectionsMax: CONNECTIONS_MAX,
        request: requests.redirect,
      }),
      offer.createsPerSecond === 0
        ? undefined
        : offerLoad({
            ...shared,
            requestsPerSecond: offer.createsPerSecond,
            connectionsMax: offer.createsPerSecond,
            request: requests.create,
          }),
    ]),
  )
  const [redirects, creates] = result
  return {
    contender: contender.name,
    ...offer,
    redirects,
    ...(creates !== undefined && { creates }),
    ...used,
  }
}

/** A span on one line. */
export function renderSpan({ contender, load, redirectsPerSecond, redirects }: PathSpan): string {
  const { statuses, notSent, p99Ms } = redirects
  const counts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  const dropped = notSent === 0 ? '' : `, ${notSent} not sent`
  const p99 = `p99 ${p99Ms.toFixed(1)} ms`
  return `${contender}, ${load}, at ${redirectsPerSecond}/s: ${counts.join(', ')}${dropped}, ${p99}`
}
