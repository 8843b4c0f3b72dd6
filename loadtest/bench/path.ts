// The whole path of a redirect through Envoy at rising offered rates, for several loads and a
// million links, with the shipped limits, in turns with the allowance and without limits. If
// REFERENCE_RATELIMIT names the reference limiter, also with it and bare node:http. The table shows
// each component's share of the machine. The cache has first a tenth of the links, then all.
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { rulesOf } from '../../test/stack/stack-allowance.ts'
import { fillCache } from './fill-links.ts'
import { LINK_EXPONENT, type LoadName, type Requests, requestsOf } from './path-loads.ts'
import { startPathPeer } from './path-peer.ts'
import { pathReportOf, type PathSpan } from './path-report.ts'
import {
  cachedLinksOf,
  CONNECTIONS_MAX,
  type Contender,
  contenderOf,
  LINKS,
  measureSpan,
  type Offer,
  renderSpan,
  sampleUrlOf,
  startService,
} from './path-service.ts'
import { type BenchOptions, conditionsOf, type Report } from './report.ts'

const RATES = [1000, 2000, 3000, 4000, 8000] as const
/** The rates of the loads other than `nat`. */
const FEWER_RATES = [1000, 4000, 8000] as const
const CREATE_RATES = [40, 400] as const
/** The rates while the cache has every link. */
const RATES_ALL_CACHED = [1000, 2000, 4000] as const
/** Redirects per second while links are created. */
const REDIRECTS_WITH_CREATES = 1000
/** Long enough for V8 and the JVM to compile hot code, because a service runs for days. */
const WARM_UP = { redirectsPerSecond: 2500, createsPerSecond: 0, seconds: 30 } as const

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
    const alone = { rates: RATES_ALL_CACHED, seconds: options.seconds, cachedLinks: LINKS }
    const offers = (['public', 'nat'] as const).flatMap((load) => offersAlone({ load, ...alone }))
    spans.push(...(await measureInTurn({ ...shared, offers })))
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
}): Promise<PathSpan<LoadName>[]> {
  const { contenders, offers, requests, options } = given
  const cachedLinks = offers[0]?.cachedLinks ?? 0
  for (const contender of contenders) {
    const offer = { ...WARM_UP, cachedLinks, load: 'nat' } as const
    await measureSpan({ contender, offer, requests: requests.nat })
  }
  const spans: PathSpan<LoadName>[] = []
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
  const shared = { seconds, cachedLinks: cachedLinksOf(LINKS) }
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
  const stack = await startService({ pods: 1, links: LINKS, log: options.log })
  closing.push(() => stack.stop())
  const cachePort = stack.cache.port
  await stack.writeRules(await rulesOf({ hasAllowance: true }))
  const allowed = await stack.startEdge({ hasAllowance: true })
  const bare = await stack.startEdge({ isUnlimited: true })
  const contenders: Contender[] = [
    contenderOf('bare', stack, bare),
    contenderOf('ours', stack, stack.edge),
    contenderOf('allowance', stack, allowed),
  ]
  const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
  if (reference === '') return { contenders, cachePort }
  const sampleUrl = sampleUrlOf(stack)
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
