// What the real `ratelimit` role tells gRPC health and /healthcheck while its Redis comes and goes:
// nothing of it unless it is asked to, and then each change at once, without a call or a reload.
import { afterEach, expect, test } from '@jest/globals'
import { freePort } from '../parts/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import { createHealthClient, type HealthClient } from './grpc-health-client.ts'
import { type Limiter, startLimiter } from './limiter.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const NAMES = ['ratelimit', '']

const rules = `
domain: shop
descriptors:
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 1000000}}
`

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
}, TEST_MS_MAX)

async function begin(env: Record<string, string>): Promise<{
  redis: RedisServer
  limiter: Limiter
  health: HealthClient
}> {
  const redis = await startRedis()
  ends.push(() => redis.close())
  return { redis, ...(await beginAt(redis.port, env)) }
}

async function beginAt(redisPort: number, env: Record<string, string>) {
  const limiter = await startLimiter({ rules, redisPort, env })
  ends.push(() => limiter.stop())
  const health = createHealthClient(limiter.grpcPort)
  ends.push(health.close)
  return { limiter, health }
}

/** What `/healthcheck` and both names of gRPC health say now. */
async function toldBy({ limiter, health }: { limiter: Limiter; health: HealthClient }) {
  const { status } = await fetch(`${limiter.url}/healthcheck`)
  return [status, ...(await Promise.all(NAMES.map(health.check)))].join(' ')
}

const [GOOD, BAD] = ['200 SERVING SERVING', '500 NOT_SERVING NOT_SERVING']

/** Whether Redis is left alone. */
async function isAway({ adminUrl }: Limiter): Promise<boolean> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  return /^curtail_limiter_store_unavailable 1$/m.test(metrics)
}

/** Calls until it is. */
async function callUntilAway(limiter: Limiter): Promise<void> {
  await waitFor('Redis to be left alone', async () => {
    await limiter.ask({ k: 'v' })
    return isAway(limiter)
  })
}

test(
  'Redis away or not, it serves: each call has its answer',
  async () => {
    const { redis, limiter, health } = await begin({})
    const watches = NAMES.map(health.watch)
    await limiter.ask({ k: 'v' })
    await redis.kill()
    await callUntilAway(limiter)
    expect(await toldBy({ limiter, health })).toBe(GOOD)
    await redis.restart()
    await waitFor('Redis', async () => !(await isAway(limiter)))
    expect(await toldBy({ limiter, health })).toBe(GOOD)
    expect(watches.map(({ seen }) => seen)).toEqual([['SERVING'], ['SERVING']])
  },
  TEST_MS_MAX,
)

const follows = { REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' }

test(
  'with REDIS_HEALTH_CHECK_ACTIVE_CONNECTION it serves only while Redis does',
  async () => {
    const { redis, limiter, health } = await begin(follows)
    const isTold = (what: string) => async () => (await toldBy({ limiter, health })) === what
    await waitFor('health with Redis', isTold(GOOD))
    const watches = NAMES.map(health.watch)
    await waitFor('watches', () => watches.every(({ seen }) => seen.length === 1))

    await redis.kill() // and nobody calls
    await waitFor('no health', () => watches.every(({ seen }) => seen.length === 2))
    expect(await toldBy({ limiter, health })).toBe(BAD)
    await redis.restart()
    await waitFor('health again', () => watches.every(({ seen }) => seen.length === 3))
    expect(await toldBy({ limiter, health })).toBe(GOOD)

    const admin = clientOf(redis.port) // a Redis that answers, and counts nothing
    ends.push(() => {
      admin.disconnect()
    })
    await admin.config('SET', 'maxmemory', '1')
    await callUntilAway(limiter)
    expect(await toldBy({ limiter, health })).toBe(BAD)
    await admin.config('SET', 'maxmemory', '0')
    await waitFor('health a third time', () => watches.every(({ seen }) => seen.length === 5))
    const [up, down] = ['SERVING', 'NOT_SERVING']
    for (const { seen } of watches) expect(seen).toEqual([up, down, up, down, up])
  },
  TEST_MS_MAX,
)

test(
  'with it, a Redis that is not there at the start is waited for',
  async () => {
    const port = await freePort()
    const { limiter, health } = await beginAt(port, follows)
    expect(await toldBy({ limiter, health })).toBe(BAD)
    const redis = await startRedis([], { port })
    ends.push(() => redis.close())
    await waitFor('health', async () => (await toldBy({ limiter, health })) === GOOD)
  },
  TEST_MS_MAX,
)
