// Unbounded distinct keys against the real `ratelimit` role: one counter per caller does not grow
// its memory or its metrics, neither with Redis nor, in the local fallback, without it.
import { type RateLimitReply, type Limiter, startExactLimiter } from '../kit/ratelimit/limiter.ts'
import { createRandom, type Random } from '../kit/random.ts'
import { maxByQuarter, residentBytes } from '../kit/resident-bytes.ts'
import { clientOf, type RedisServer, startRedis } from '../dependencies/redis.ts'

/**
 * The fallback keeps 100,000 counters: with more keys it only replaces them. The warm-up is longer
 * than the measured phase, because the garbage collector needs that long to reach a steady state.
 */
const FULL_SIZE = {
  shared: { warmUp: 1_500_000, keys: 1_000_000 },
  local: { warmUp: 600_000, keys: 400_000 },
}
const WORKERS = 8
const DESCRIPTORS_MAX = 48
const SAMPLES = 200
/** For the full size, whose memory is stable after the warm-up. */
const FULL_GROWTH_MAX = 1.1
const SERIES_MAX = 1000
const LONG_CHARACTERS = 2000

const limit = 'unit: day, requests_per_unit: 10'
const rules = `
domain: shop
descriptors:
  - {key: plain, rate_limit: {${limit}}}
  - {key: tight, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: named, value_to_metric: true, rate_limit: {${limit}}}
  - {key: detailed, detailed_metric: true, rate_limit: {${limit}}}
  - {key: wild, value: "v*", rate_limit: {${limit}}}
  - {key: hashed, hashed: true, rate_limit: {${limit}}}
  - {key: log, rate_limit: {algorithm: sliding_window_log, ${limit}}}
  - {key: counter, rate_limit: {algorithm: sliding_window_counter, ${limit}}}
  - {key: bucket, rate_limit: {algorithm: token_bucket, ${limit}}}
  - {key: leaky, rate_limit: {algorithm: leaky_bucket, ${limit}}}
`
const plainKeys = [
  'plain',
  'named',
  'detailed',
  'wild',
  'hashed',
  'log',
  'counter',
  'bucket',
  'leaky',
]

/** The result of a run. */
export interface KeysOutcome {
  /** The most memory in each quarter of the calls after the warm-up, in bytes. */
  readonly sharedBytes: readonly number[]
  readonly localBytes: readonly number[]
  readonly sharedSeconds: number
  readonly localSeconds: number
  /** Counters in Redis at the end. */
  readonly counters: number
  /** Checks that were decided without Redis. */
  readonly fallbacks: number
  readonly series: number
}

/** The number of keys: first those of the warm-up. */
interface Size {
  readonly warmUp: number
  readonly keys: number
}

/** Requests these keys with Redis, then others without it. Throws if a bound is exceeded. */
export async function requestManyKeys(given: {
  readonly shared: Size
  readonly local: Size
  /** Bound of the most memory in the last quarter, relative to that of the second one. */
  readonly growthMax: number
  readonly seed: number
}): Promise<KeysOutcome> {
  const redis = await startRedis()
  // Small enough that every key with Redis becomes a counter there.
  const env = { LOCAL_CACHE_SIZE_IN_BYTES: '1048576' }
  const limiter = await startExactLimiter({ rules, redisPort: redis.port, env })
  try {
    const names = createNames()
    const random = createRandom(given.seed)
    const sendPhases = async ({ warmUp, keys }: Size) => {
      await sendPhase({ limiter, names, keys: warmUp, random })
      return sendPhase({ limiter, names, keys, random })
    }
    const shared = await sendPhases(given.shared)
    const counters = await countersIn(redis)
    const keysShared = given.shared.warmUp + given.shared.keys
    if (counters < keysShared) throw new Error(`Redis has ${counters} of ${keysShared} keys`)
    await redis.kill()
    const local = await sendPhases(given.local)
    const metrics = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
    const fallbacks = fallbacksIn(metrics)
    if (fallbacks < given.local.keys)
      throw new Error(`only ${fallbacks} were decided without Redis`)
    const series = metrics.split('\n').filter((line) => /^[^#]/.test(line)).length
    if (series >= SERIES_MAX) throw new Error(`${series} series, expected fewer than ${SERIES_MAX}`)
    const [sharedBytes, localBytes] = [shared, local].map(({ samples }) => {
      return flatQuarters(samples, given.growthMax)
    })
    return {
      sharedBytes: sharedBytes ?? [],
      localBytes: localBytes ?? [],
      sharedSeconds: shared.seconds,
      localSeconds: local.seconds,
      counters,
      fallbacks,
      series,
    }
  } finally {
    await limiter.stop()
    await redis.close()
  }
}

/** The outcome in lines. */
export function renderKeysOutcome(outcome: KeysOutcome): string {
  const megabytes = (bytes: readonly number[]) =>
    bytes.map((each) => (each / 2 ** 20).toFixed(0)).join(', ')
  const { counters, fallbacks, series, sharedSeconds, localSeconds } = outcome
  return [
    `${counters} counters in Redis, ${sharedSeconds.toFixed(0)} s; most RSS by quarters:`,
    `${megabytes(outcome.sharedBytes)} MiB\n`,
    `${fallbacks} decided without Redis, ${localSeconds.toFixed(0)} s; most RSS by quarters:`,
    `${megabytes(outcome.localBytes)} MiB\n`,
    `${series} series`,
  ].join(' ')
}

/** Values that occur once. */
function createNames(): (random: Random) => string {
  let names = 0
  return (random) => {
    const name = `v${(names++).toString(36)}`
    return random.chance(0.005) ? name.padEnd(LONG_CHARACTERS, '.') : name
  }
}

async function sendPhase(given: {
  limiter: Limiter
  names: (random: Random) => string
  keys: number
  random: Random
}): Promise<{ samples: readonly number[]; seconds: number }> {
  const { limiter, names, keys, random } = given
  const startedMs = performance.now()
  const samples: number[] = []
  let sent = 0
  const workers = Array.from({ length: WORKERS }, async () => {
    while (sent < keys) {
      const count = 1 + random.int(DESCRIPTORS_MAX)
      // A denied call counts no other descriptor: all of its descriptors are over their limits.
      const next = random.chance(0.1) ? nextDenied : nextDescriptor
      const descriptors = Array.from({ length: count }, () => next(random, names(random)))
      sent += count
      const response = (await limiter.client.call({ domain: 'shop', descriptors })) as unknown
      const { statuses } = response as RateLimitReply
      if (statuses.some(({ currentLimit }) => currentLimit === null) || statuses.length !== count) {
        throw new Error(`a key has no limit: ${JSON.stringify([descriptors, statuses])}`)
      }
      if (random.chance(0.01)) await callOtherDomain(limiter, names(random))
      if (sent >= (samples.length / SAMPLES) * keys) samples.push(await residentBytes(limiter.pid))
    }
  })
  await Promise.all(workers)
  return { samples, seconds: (performance.now() - startedMs) / 1000 }
}

/** A descriptor of a rule, or with its own limit in the request. */
function nextDescriptor(random: Random, value: string): object {
  if (!random.chance(0.1)) return { entries: [{ key: random.pick(plainKeys), value }] }
  const ownLimit = { requestsPerUnit: 1 + random.int(9), unit: random.pick(['DAY', 'YEAR']) }
  return { entries: [{ key: random.pick(['plain', 'unlisted']), value }], limit: ownLimit }
}

/** A descriptor that exceeds its limit immediately. */
function nextDenied(_: Random, value: string): object {
  return { entries: [{ key: 'tight', value }], hitsAddend: { value: 2 } }
}

/** A call in a domain without rules. */
async function callOtherDomain({ client }: Limiter, domain: string): Promise<void> {
  await client.call({ domain, descriptors: [{ entries: [{ key: 'plain', value: domain }] }] })
}

async function countersIn({ port }: RedisServer): Promise<number> {
  const client = clientOf(port)
  const size = await client.dbsize()
  client.disconnect()
  return size
}

function fallbacksIn(metrics: string): number {
  const counts = metrics.matchAll(
    /^curtail_limiter_decisions_total\{source="fallback",\S+ (\d+)$/gm,
  )
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** The most memory of each quarter. Throws if the last exceeds the bound of the second. */
function flatQuarters(samples: readonly number[], growthMax: number): readonly number[] {
  const most = maxByQuarter(samples)
  const [, second = 0, , last = Infinity] = most
  if (last > second * growthMax) throw new Error(`RSS grows by quarters: ${most.join(', ')}`)
  return most
}

/** Runs the test at full size. */
export async function run({ seed, log }: { seed: number; log: (line: string) => void }) {
  log(renderKeysOutcome(await requestManyKeys({ ...FULL_SIZE, growthMax: FULL_GROWTH_MAX, seed })))
}
