// gRPC health and /healthcheck of the `ratelimit` role while its Redis fails and recovers: by
// default they ignore Redis; with REDIS_HEALTH_CHECK_ACTIVE_CONNECTION they report each change
// immediately, without a call or a reload.
import { afterEach, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { createHealthClient, type HealthClient } from '../../kit/ratelimit/grpc-health-client.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const NAMES = ['ratelimit', '']

const rules = `
domain: shop
descriptors:
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 1000000}}
`

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
}, TEST_MS_MAX)

async function startWithRedis(env: Record<string, string>): Promise<{
  redis: RedisServer
  limiter: Limiter
  health: HealthClient
}> {
  const redis = await startRedis()
  cleanUps.push(() => redis.close())
  return { redis, ...(await startOnPort(redis.port, env)) }
}

async function startOnPort(redisPort: number, env: Record<string, string>) {
  const limiter = await startLimiter({ rules, redisPort, env })
  cleanUps.push(() => limiter.stop())
  const health = createHealthClient(limiter.grpcPort)
  cleanUps.push(health.close)
  return { limiter, health }
}

/** The current results of `/healthcheck` and of gRPC health with both names. */
async function healthOf({ limiter, health }: { limiter: Limiter; health: HealthClient }) {
  const { status } = await fetch(`${limiter.url}/healthcheck`)
  return [status, ...(await Promise.all(NAMES.map(health.check)))].join(' ')
}

const [HEALTHY, UNHEALTHY] = ['200 SERVING SERVING', '500 NOT_SERVING NOT_SERVING']

/** Whether the circuit breaker of Redis is open. */
async function isBreakerOpen({ adminUrl }: Limiter): Promise<boolean> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  return /^curtail_limiter_store_unavailable 1$/m.test(metrics)
}

/** Calls until the circuit breaker opens. */
async function callUntilBreakerOpens(limiter: Limiter): Promise<void> {
  await waitFor('the circuit breaker to open', async () => {
    await limiter.decide({ k: 'v' })
    return isBreakerOpen(limiter)
  })
}

test(
  'the limiter is healthy even if Redis is unavailable, because it decides every call',
  async () => {
    const { redis, limiter, health } = await startWithRedis({})
    const watches = NAMES.map(health.watch)
    await limiter.decide({ k: 'v' })
    await redis.kill()
    await callUntilBreakerOpens(limiter)
    expect(await healthOf({ limiter, health })).toBe(HEALTHY)
    await redis.restart()
    await waitFor('Redis', async () => !(await isBreakerOpen(limiter)))
    expect(await healthOf({ limiter, health })).toBe(HEALTHY)
    expect(watches.map(({ statuses }) => statuses)).toEqual([['SERVING'], ['SERVING']])
  },
  TEST_MS_MAX,
)

const redisRequired = { REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' }

test(
  'the limiter with REDIS_HEALTH_CHECK_ACTIVE_CONNECTION is unhealthy without Redis',
  async () => {
    const { redis, limiter, health } = await startWithRedis(redisRequired)
    const reports = (state: string) => async () => (await healthOf({ limiter, health })) === state
    await waitFor('health with Redis', reports(HEALTHY))
    const watches = NAMES.map(health.watch)
    await waitFor('watches', () => watches.every(({ statuses }) => statuses.length === 1))

    await redis.kill() // no call is in flight
    await waitFor('the unhealthy state', () =>
      watches.every(({ statuses }) => statuses.length === 2),
    )
    expect(await healthOf({ limiter, health })).toBe(UNHEALTHY)
    await redis.restart()
    await waitFor('the healthy state', () => watches.every(({ statuses }) => statuses.length === 3))
    expect(await healthOf({ limiter, health })).toBe(HEALTHY)

    const admin = clientOf(redis.port) // a Redis that responds but rejects writes
    cleanUps.push(() => {
      admin.disconnect()
    })
    await admin.config('SET', 'maxmemory', '1')
    await callUntilBreakerOpens(limiter)
    expect(await healthOf({ limiter, health })).toBe(UNHEALTHY)
    await admin.config('SET', 'maxmemory', '0')
    await waitFor('the third healthy state', () =>
      watches.every(({ statuses }) => statuses.length === 5),
    )
    const [up, down] = ['SERVING', 'NOT_SERVING']
    for (const { statuses } of watches) expect(statuses).toEqual([up, down, up, down, up])
  },
  TEST_MS_MAX,
)

test(
  'the limiter with that setting that starts without Redis is unhealthy until it connects',
  async () => {
    const port = await freePort()
    const { limiter, health } = await startOnPort(port, redisRequired)
    expect(await healthOf({ limiter, health })).toBe(UNHEALTHY)
    const redis = await startRedis([], { port })
    cleanUps.push(() => redis.close())
    await waitFor('health', async () => (await healthOf({ limiter, health })) === HEALTHY)
  },
  TEST_MS_MAX,
)
