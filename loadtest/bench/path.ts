// The whole path of a redirect through Envoy at rising offered rates, for several loads and a
// million links, with the shipped limits, in turns with the allowance and without limits. If
// REFERENCE_RATELIMIT names the reference limiter, also with it and bare node:http. The table shows
// each component's share of the machine. The cache has first a tenth of the links, then all.
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import type { Edge } from '../../test/stack/start-edge.ts'
import { rulesOf } from '../../test/stack/stack-allowance.ts'
import { startStack, type Stack } from '../../test/stack/start-stack.ts'
import { fillCache, fillLinks, filledCode, readLinks } from './fill-links.ts'
import { offerLoad } from './offered-load.ts'
import { LINK_EXPONENT, type LoadName, type Requests, requestsOf } from './path-loads.ts'
import { startPathPeer } from './path-peer.ts'
import { type ContenderName, pathReportOf, type PathSpan } from './path-report.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'
import { untilSettled } from './until-settled.ts'

const LINKS = 1_000_000
const RATES = [1000, 2000, 3000, 4000, 6000, 8000, 12_000] as const
/** The rates of the loads other than `nat`. */
const FEWER_RATES = [1000, 4000, 8000] as const
const CREATE_RATES = [40, 400] as const
/** The rates while the cache has every link. */
const RATES_ALL_CACHED = [2000, 3000, 4000] as const
/** Redirects per second while links are created. */
const REDIRECTS_WITH_CREATES = 1000
const CONNECTIONS_MAX = 512
/** Long enough for V8 and the JVM to compile hot code, because a service runs for days. */
const WARM_UP = { redirectsPerSecond: 2500, createsPerSecond: 0, seconds: 30 } as const
const WARM_UP_READS = 200_000
/** The most requested tenth of the links. */
const CACHED_LINKS = LINKS / 10
/** Enough for all links. */
const CACHE_MEGABYTES = 512
const CODES = 200_000

/** One of the compared services: its port and its processes by component. */
interface Contender {
  readonly name: ContenderName
  readonly port: number
  readonly pids: Readonly<Record<string, readonly number[]>>
}

/** The load of one span. */
interface Offer {
  readonly load: LoadName
  readonly redirectsPerSecond: number
  readonly createsPerSecond: number
  readonly seconds: number
  /** The number of most requested links in the cache. */
  readonly cachedLinks: number
}

/** Runs the benchmark. */
export async function benchPath(options: BenchOptions): Promise<Report> {
  const closing: Stop[] = []
  try {
    const conditions = conditionsOf()
    const { contenders, cachePort } = await startContenders(options, closing)
    const requests = {
      public: requestsOf('public', LINKS),
      nat: requestsOf('nat', LINKS),
      zipf: requestsOf('zipf', LINKS),
    }
    const shared = { contenders, requests, options }
    const spans = await measureInTurn({ ...shared, offers: offersOf(options.seconds) })
    await fillCache(cachePort, LINKS)
    options.log('the cache has every link')
    const alone = {
      load: 'nat',
      rates: RATES_ALL_CACHED,
      seconds: options.seconds,
      cachedLinks: LINKS,
    } as const
    spans.push(...(await measureInTurn({ ...shared, offers: offersAlone(alone) })))
    return pathReportOf({
      spans,
      conditions: {
        ...conditions,
        ...{ repetitions: options.repetitions, 'seconds each': options.seconds },
        ...{ links: LINKS, connections: CONNECTIONS_MAX, 'Zipf exponent': LINK_EXPONENT },
      },
    })
  } finally {
    await stopInTurn(closing.toReversed())
  }
}

/** Warms up all contenders, then measures each offer on each of them in turns. */
async function measureInTurn(given: {
  readonly contenders: readonly Contender[]
  readonly offers: readonly Offer[]
  readonly requests: Readonly<Record<LoadName, Requests>>
  readonly options: BenchOptions
}): Promise<PathSpan[]> {
  const { contenders, offers, requests, options } = given
  const cachedLinks = offers[0]?.cachedLinks ?? 0
  for (const contender of contenders) {
    const offer = { ...WARM_UP, cachedLinks, load: 'nat' } as const
    await measureSpan({ contender, offer, requests: requests.nat })
  }
  const spans: PathSpan[] = []
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    const order = repetition % 2 === 0 ? contenders : contenders.toReversed()
    for (const offer of offers) {
      for (const contender of order) {
        if (offer.createsPerSecond > 0 && contender.name !== 'ours') continue
        const span = await measureSpan({ contender, offer, requests: requests[offer.load] })
        spans.push(span)
        options.log(renderSpan(span))
      }
    }
  }
  return spans
}

function offersAlone(given: {
  readonly load: LoadName
  readonly rates: readonly number[]
  readonly seconds: number
  readonly cachedLinks: number
}): Offer[] {
  const { rates, ...shared } = given
  return rates.map((redirectsPerSecond) => ({ redirectsPerSecond, createsPerSecond: 0, ...shared }))
}

function offersOf(seconds: number): Offer[] {
  const shared = { seconds, cachedLinks: CACHED_LINKS }
  const withCreates = CREATE_RATES.map((createsPerSecond) => {
    const load = 'nat' as const
    return { load, redirectsPerSecond: REDIRECTS_WITH_CREATES, createsPerSecond, ...shared }
  })
  return [
    ...offersAlone({ load: 'nat', rates: RATES, ...shared }),
    ...offersAlone({ load: 'public', rates: FEWER_RATES, ...shared }),
    ...offersAlone({ load: 'zipf', rates: FEWER_RATES, ...shared }),
    ...withCreates,
  ]
}

async function startContenders(
  options: BenchOptions,
  closing: Stop[],
): Promise<{ readonly contenders: readonly Contender[]; readonly cachePort: number }> {
  const stack = await startStack({
    cassandraNodes: 1,
    isProductionJvm: true,
    cacheMegabytes: CACHE_MEGABYTES,
    codes: CODES,
    trustedHops: 1,
    onStep: options.log,
  })
  closing.push(() => stack.stop())
  const { contactPoints, port, localDc } = stack.cassandra
  await fillLinks({ contactPoints, port, localDc, count: LINKS, log: options.log })
  await fillCache(stack.cache.port, CACHED_LINKS)
  const from = CACHED_LINKS
  await readLinks({ contactPoints, port, localDc, from, to: LINKS, reads: WARM_UP_READS })
  await untilSettled(stack.cassandraNodes, options.log)
  const cachePort = stack.cache.port
  await stack.writeRules(await rulesOf({ hasAllowance: true }))
  const allowed = await stack.startEdge({ hasAllowance: true })
  const bare = await stack.startEdge({ isUnlimited: true })
  const contenders: Contender[] = [
    { name: 'bare', port: bare.port, pids: pidsOf(stack, bare) },
    { name: 'ours', port: stack.port, pids: pidsOf(stack, stack.edge) },
    { name: 'allowance', port: allowed.port, pids: pidsOf(stack, allowed) },
  ]
  const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
  if (reference === '') return { contenders, cachePort }
  const sampleUrl = `http://127.0.0.1:${stack.redirects[0]?.port ?? 0}/${filledCode(0)}`
  const peer = await startPathPeer({ reference, stack, sampleUrl, closing })
  const pids = {
    envoy: [peer.edge.envoy.pid()],
    limiter: [peer.limiter.pid],
    counters: [peer.limiter.redisPid],
    redirect: peer.upstreamPids,
  }
  contenders.push({ name: 'peer', port: peer.edge.port, pids })
  return { contenders, cachePort }
}

function pidsOf(stack: Stack, edge: Edge): Contender['pids'] {
  const of = (processes: readonly { pid: () => number }[]) => processes.map((each) => each.pid())
  return {
    envoy: of([edge.envoy]),
    limiter: of(stack.limiters),
    counters: of([stack.counters]),
    redirect: of(stack.redirects),
    cache: of([stack.cache]),
    create: of(stack.creates),
    cassandra: of(stack.cassandraNodes),
  }
}

async function measureSpan(given: {
  readonly contender: Contender
  readonly offer: Offer
  readonly requests: Requests
}): Promise<PathSpan> {
  const { contender, offer, requests } = given
  const { port, pids } = contender
  const shared = { port, seconds: offer.seconds }
  const cpuUs = () => {
    const sums = Object.entries(pids).map(([name, all]) => {
      return [name, all.reduce((sum, pid) => sum + cpuUsOf(pid), 0)] as const
    })
    return Object.fromEntries([...sums, ['generator', cpuUsOf(process.pid)]])
  }
  const before = cpuUs()
  const [redirects, creates] = await Promise.all([
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
  ])
  const after = cpuUs()
  const spent = Object.entries(after).map(([name, us]) => [name, us - (before[name] ?? 0)] as const)
  return {
    contender: contender.name,
    ...offer,
    redirects,
    ...(creates !== undefined && { creates }),
    cpuUs: Object.fromEntries(spent),
  }
}

function renderSpan({ contender, load, redirectsPerSecond, redirects }: PathSpan): string {
  const { statuses, notSent, p99Ms } = redirects
  const counts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  const dropped = notSent === 0 ? '' : `, ${notSent} not sent`
  const p99 = `p99 ${p99Ms.toFixed(1)} ms`
  return `${contender}, ${load}, at ${redirectsPerSecond}/s: ${counts.join(', ')}${dropped}, ${p99}`
}
