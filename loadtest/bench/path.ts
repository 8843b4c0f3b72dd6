// The whole path of a redirect through Envoy at rising offered rates, for 10,000 clients and a
// million links, with the shipped limits. If REFERENCE_RATELIMIT names the reference limiter, it is
// compared in turns with the same Envoy, that limiter and bare node:http. Nothing is pinned: the
// table shows each component's share of the machine. The cache has first a tenth of the links, then
// all of them, as after days of traffic.
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { createRandom } from '../../test/kit/random.ts'
import { startStack, type Stack } from '../../test/stack/start-stack.ts'
import { fillCache, fillLinks, filledCode, readLinks } from './fill-links.ts'
import { offerLoad } from './offered-load.ts'
import { startPathPeer } from './path-peer.ts'
import { pathReportOf, type PathSpan } from './path-report.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'
import { untilSettled } from './until-settled.ts'
import { drawZipf } from './zipf.ts'

const LINKS = 1_000_000
/** With it, a tenth of the links gets nine tenths of the requests. */
const ZIPF_EXPONENT = 1.08
const CLIENTS = 10_000
const RATES = [1000, 2000, 3000, 4000, 6000, 8000, 12_000] as const
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
const SEED = 12_000

/** One of the compared services: its port and its processes by component. */
interface Contender {
  readonly name: 'ours' | 'peer'
  readonly port: number
  readonly pids: Readonly<Record<string, readonly number[]>>
}

/** The load of one span. */
interface Offer {
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
    const requests = requestsOf()
    const shared = { contenders, requests, options }
    const spans = await measureInTurn({ ...shared, offers: offersOf(options.seconds) })
    await fillCache(cachePort, LINKS)
    options.log('the cache has every link')
    const alone = { rates: RATES_ALL_CACHED, seconds: options.seconds, cachedLinks: LINKS }
    spans.push(...(await measureInTurn({ ...shared, offers: offersAlone(alone) })))
    return pathReportOf({
      spans,
      conditions: {
        ...conditions,
        ...{ repetitions: options.repetitions, 'seconds each': options.seconds },
        ...{ links: LINKS, clients: CLIENTS, connections: CONNECTIONS_MAX },
        'Zipf exponent': ZIPF_EXPONENT,
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
  readonly requests: Requests
  readonly options: BenchOptions
}): Promise<PathSpan[]> {
  const { contenders, offers, requests, options } = given
  const cachedLinks = offers[0]?.cachedLinks ?? 0
  for (const contender of contenders) {
    await measureSpan({ contender, offer: { ...WARM_UP, cachedLinks }, requests })
  }
  const spans: PathSpan[] = []
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    const order = repetition % 2 === 0 ? contenders : contenders.toReversed()
    for (const offer of offers) {
      for (const contender of order) {
        if (offer.createsPerSecond > 0 && contender.name !== 'ours') continue
        const span = await measureSpan({ contender, offer, requests })
        spans.push(span)
        options.log(renderSpan(span))
      }
    }
  }
  return spans
}

function offersAlone(given: {
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
    return { redirectsPerSecond: REDIRECTS_WITH_CREATES, createsPerSecond, ...shared }
  })
  return [...offersAlone({ rates: RATES, ...shared }), ...withCreates]
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
  const ours: Contender = { name: 'ours', port: stack.port, pids: pidsOf(stack) }
  const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
  if (reference === '') return { contenders: [ours], cachePort }
  const sampleUrl = `http://127.0.0.1:${stack.redirects[0]?.port ?? 0}/${filledCode(0)}`
  const peer = await startPathPeer({ reference, stack, sampleUrl, closing })
  const pids = {
    envoy: [peer.edge.envoy.pid()],
    limiter: [peer.limiter.pid],
    counters: [peer.limiter.redisPid],
    redirect: peer.upstreamPids,
  }
  return { contenders: [{ name: 'peer', port: peer.edge.port, pids }, ours], cachePort }
}

function pidsOf(stack: Stack): Contender['pids'] {
  const of = (processes: readonly { pid: () => number }[]) => processes.map((each) => each.pid())
  return {
    envoy: of([stack.edge.envoy]),
    limiter: of(stack.limiters),
    counters: of([stack.counters]),
    redirect: of(stack.redirects),
    cache: of([stack.cache]),
    create: of(stack.creates),
    cassandra: of(stack.cassandraNodes),
  }
}

/** Generators of serialised requests. */
interface Requests {
  readonly redirect: () => Buffer
  readonly create: () => Buffer
}

function requestsOf(): Requests {
  const { int } = createRandom(SEED)
  const fraction = 2 ** 31
  const random = () => int(fraction) / fraction
  const draw = drawZipf({ count: LINKS, exponent: ZIPF_EXPONENT, random })
  const headers = () => {
    const client = int(CLIENTS)
    const address = `10.${client >> 12}.${(client >> 6) & 63}.${client & 63}`
    return `Host: 127.0.0.1\r\nX-Forwarded-For: ${address}\r\n`
  }
  const body = JSON.stringify({ long_url: 'https://example.com/a/path/of/usual/length?id=new' })
  const rest = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  return {
    redirect: () =>
      Buffer.from(`GET /${filledCode(draw())} HTTP/1.1\r\n${headers()}\r\n`, 'latin1'),
    create: () => Buffer.from(`POST /v1/urls HTTP/1.1\r\n${headers()}${rest}`, 'latin1'),
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

function renderSpan({ contender, redirectsPerSecond, redirects }: PathSpan): string {
  const { statuses, notSent, p99Ms } = redirects
  const counts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  const dropped = notSent === 0 ? '' : `, ${notSent} not sent`
  const p99 = `p99 ${p99Ms.toFixed(1)} ms`
  return `${contender} at ${redirectsPerSecond}/s: ${counts.join(', ')}${dropped}, ${p99}`
}
