// Unbounded distinct keys against the real `ratelimit` role: one counter per caller does not grow
// its memory or its metrics, neither with Redis nor, in the local fallback, without it.
import { type RateLimitReply, type Limiter, startExactLimiter } from '../kit/ratelimit/limiter.ts'
import { createRandom, type Random } from '../kit/random.ts'
import { maxByQuarter, residentBytes } from '../kit/resident-bytes.ts'
import { clientOf, type RedisServer, startRedis } from '../dependencies/redis.ts'

/**
 * The memory of the fallback holds 100,000: with more than these it only replaces. The warm-up is
 * longer than what is judged: in less time the collector of garbage has not found its rhythm.
 */
const FULL_SIZE = {
  shared: { warmUp: 1_500_000, keys: 1_000_000 },
  local: { warmUp: 600_000, keys: 400_000 },
}
const WORKERS = 8
const DESCRIPTORS_MAX = 48
const SAMPLES = 200
/** For the full size, in which memory has its size after the warm-up. */
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

/** What a run was like. */
export interface KeysOutcome {
  /** Most memory of each quarter of the calls after the warm-up, in bytes. */
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

/** How many keys are asked for, first those after which the process has its size. */
interface Size {
  readonly warmUp: number
  readonly keys: number
}

/** Asks for so many keys with Redis, then for others without. Throws what is out of bounds. */
export async function requestManyKeys(given: {
  readonly shared: Size
  readonly local: Size
  /** The most of the last quarter of the samples, as part of the most of the second one. */
  readonly growthMax: number
  readonly seed: number
}): Promise<KeysOutcome> {
  const redis = await startRedis()
  // Every key of the first part is to be a counter in Redis.
  const env = { LOCAL_CACHE_SIZE_IN_BYTES: '1048576' }
  const limiter = await startExactLimiter({ rules, redisPort: redis.port, env })
  try {
    const names = createNames()
    const random = createRandom(given.seed)
    const ask = async ({ warmUp, keys }: Size) => {
      await askPhase({ limiter, names, keys: warmUp, random })
      return askPhase({ limiter, names, keys, random })
    }
    const shared = await ask(given.shared)
    const counters = await countersIn(redis)
    const keysShared = given.shared.warmUp + given.shared.keys
    if (counters < keysShared) throw new Error(`Redis has ${counters} of ${keysShared} keys`)
    await redis.kill()
    const local = await ask(given.local)
    const metrics = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
    const fallbacks = fallbacksIn(metrics)
    if (fallbacks < given.local.keys)
      throw new Error(`only ${fallbacks} were decided without Redis`)
    const series = metrics.split('\n').filter((line) => /^[^#]/.test(line)).length
    if (series >= SERIES_MAX) throw new Error(`there are ${series} series`)
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

/** Values that were never there before. */
function createNames(): (random: Random) => string {
  let names = 0
  return (random) => {
    const name = `v${(names++).toString(36)}`
    return random.chance(0.005) ? name.padEnd(LONG_CHARACTERS, '.') : name
  }
}

async function askPhase(given: {
  limiter: Limiter
  names: (random: Random) => string
  keys: number
  random: Random
}): Promise<{ samples: readonly number[]; seconds: number }> {
  const { limiter, names, keys, random } = given
  const startedMs = performance.now()
  const samples: number[] = []
  let asked = 0
  const workers = Array.from({ length: WORKERS }, async () => {
    while (asked < keys) {
      const count = 1 + random.int(DESCRIPTORS_MAX)
      // A call that is denied leaves no counter of the others: so it asks for nothing else.
      const next = random.chance(0.1) ? nextDenied : nextDescriptor
      const descriptors = Array.from({ length: count }, () => next(random, names(random)))
      asked += count
      const answer = (await limiter.client.call({ domain: 'shop', descriptors })) as unknown
      const { statuses } = answer as RateLimitReply
      if (statuses.some(({ currentLimit }) => currentLimit === null) || statuses.length !== count) {
        throw new Error(`a key met no limit: ${JSON.stringify([descriptors, statuses])}`)
      }
      if (random.chance(0.01)) await askElsewhere(limiter, names(random))
      if (asked >= (samples.length / SAMPLES) * keys) samples.push(await residentBytes(limiter.pid))
    }
  })
  await Promise.all(workers)
  return { samples, seconds: (performance.now() - startedMs) / 1000 }
}

/** Of a rule, or with a limit that the caller brings. */
function nextDescriptor(random: Random, value: string): object {
  if (!random.chance(0.1)) return { entries: [{ key: random.pick(plainKeys), value }] }
  const brought = { requestsPerUnit: 1 + random.int(9), unit: random.pick(['DAY', 'YEAR']) }
  return { entries: [{ key: random.pick(['plain', 'brought']), value }], limit: brought }
}

/** Over its limit at once. */
function nextDenied(_: Random, value: string): object {
  return { entries: [{ key: 'tight', value }], hitsAddend: { value: 2 } }
}

/** In a domain that no rule knows. */
async function askElsewhere({ client }: Limiter, domain: string): Promise<void> {
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

/** The most of each quarter. Throws where the last one is more than the second allows. */
function flatQuarters(samples: readonly number[], growthMax: number): readonly number[] {
  const most = maxByQuarter(samples)
  const [, second = 0, , last = Infinity] = most
  if (last > second * growthMax) throw new Error(`RSS grows by quarters: ${most.join(', ')}`)
  return most
}

/** The full size. */
export async function storm({ seed, log }: { seed: number; log: (line: string) => void }) {
  log(renderKeysOutcome(await requestManyKeys({ ...FULL_SIZE, growthMax: FULL_GROWTH_MAX, seed })))
}
