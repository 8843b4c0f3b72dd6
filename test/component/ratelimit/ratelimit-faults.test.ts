// The `ratelimit` role while its Redis hangs, dies, restarts empty, is slow, rejects scripts, is
// full, or is unavailable at the start: every call returns its rule's fallback within the deadline,
// and the shared count recovers soon after Redis does.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { callsOverDeadline } from '../../kit/ratelimit/calls-over-deadline.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutWaits } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
/** The shared count recovers within this time. */
const RECOVERY_MS_MAX = 1000

const rules = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: hour, requests_per_unit: 1000000}}
  - {key: tight, rate_limit: {unit: year, requests_per_unit: 4}}
  - {key: allow, rate_limit: {unit: hour, requests_per_unit: 1, on_store_error: allow}}
  - {key: deny, rate_limit: {unit: hour, requests_per_unit: 1000, on_store_error: deny}}
`

let redis: RedisServer
let proxy: FaultProxy
let limiter: Limiter

beforeAll(async () => {
  redis = await startRedis()
  proxy = await startFaultProxy({ to: { host: '127.0.0.1', port: redis.port } })
  limiter = await startLimiter({ rules, redisPort: proxy.port })
  await timeCalls(100) // warm-up
}, SETUP_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  await proxy.close()
  await redis.close()
}, TEST_MS_MAX)

let values = 0
const fresh = () => `v${++values}`

/** Whether counts are shared: Redis decides the next call. */
async function isShared(): Promise<boolean> {
  const metrics = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
  if (!metrics.includes('curtail_limiter_store_unavailable 0')) return false
  const before = decisionsOf(metrics)
  await limiter.decide({ local: fresh() })
  const after = decisionsOf(await (await fetch(`${limiter.adminUrl}/metrics`)).text())
  return after > before
}

/** The number of decisions that came from Redis. */
function decisionsOf(metrics: string): number {
  const counts = metrics.matchAll(/^curtail_limiter_decisions_total\{source="store",\S+ (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Calls sequentially. Returns the duration of each call in ms. */
async function timeCalls(calls: number): Promise<readonly number[]> {
  const tookMs: number[] = []
  for (let call = 0; call < calls; call++) {
    const callOnce = async () => {
      expect((await limiter.decide({ local: fresh() })).overallCode).toBe('OK')
    }
    tookMs.push(await durationWithoutWaits(limiter.pid, callOnce))
  }
  return tookMs
}

/** Verifies the fallback of each kind of rule while Redis is unavailable. */
async function verifyFallbacks(): Promise<void> {
  const tight = { tight: fresh() }
  for (let call = 0; call < 4; call++) {
    expect((await limiter.decide(tight)).overallCode).toBe('OK')
  }
  expect((await limiter.decide(tight)).overallCode).toBe('OVER_LIMIT')
  const allow = { allow: fresh() }
  for (let call = 0; call < 3; call++) {
    expect((await limiter.decide(allow)).overallCode).toBe('OK')
  }
  expect((await limiter.decide({ deny: fresh() })).overallCode).toBe('OVER_LIMIT')
}

/** Why the limiter does not use Redis, by its log after the first `lines` lines. */
function loggedCauses(lines: number): string[] {
  const isOfFault = ({ msg }: Record<string, unknown>) =>
    String(msg).includes('the on_store_error of each rule applies')
  const errors = limiter.log.slice(lines).filter(isOfFault)
  return errors.map(({ err }) => JSON.stringify(err))
}

interface Fault {
  readonly inject: () => void | Promise<void>
  readonly repair: () => void | Promise<void>
  /** The error in the log. */
  readonly cause: RegExp
}

const admin = async (...command: [string, ...string[]]) => {
  const client = clientOf(redis.port)
  const [name, ...args] = command
  await client.call(name, ...args)
  client.disconnect()
}

const faults: Record<string, Fault> = {
  'that hangs': {
    inject: () => {
      redis.stop()
    },
    repair: () => {
      redis.resume()
    },
    cause: /timeout/,
  },
  'that is killed and restarts empty': {
    inject: () => redis.kill(),
    repair: () => redis.restart(),
    cause: /\w/,
  },
  'that delays replies by 200 ms': {
    inject: () => {
      proxy.delay(200)
    },
    repair: () => {
      proxy.delay(0)
    },
    cause: /timeout/,
  },
  'that rejects scripts': {
    inject: () => admin('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    repair: () => admin('ACL', 'SETUSER', 'default', '+@all'),
    cause: /NOPERM/,
  },
  'that is out of memory': {
    inject: () => admin('CONFIG', 'SET', 'maxmemory', '1'),
    repair: () => admin('CONFIG', 'SET', 'maxmemory', '0'),
    cause: /OOM/,
  },
}

describe.each(Object.entries(faults))('a Redis %s', (_, { inject, repair, cause }) => {
  test(
    'delays no call, and the shared count recovers soon after the fault',
    async () => {
      await waitFor('the shared count', isShared)
      const lines = limiter.log.length
      await inject()
      try {
        expect(callsOverDeadline(await timeCalls(20))).toEqual([])
        await verifyFallbacks()
        await waitFor('the error in the log', async () => {
          await limiter.decide({ local: fresh() }) // failures of 50 ms open the circuit breaker
          return loggedCauses(lines).some((logged) => cause.test(logged))
        })
      } finally {
        await repair()
      }
      const repairedMs = performance.now()
      await waitFor('the shared count', isShared)
      expect(performance.now() - repairedMs).toBeLessThan(5 * RECOVERY_MS_MAX)
      expect(limiter.child.exitCode).toBeNull()
    },
    TEST_MS_MAX,
  )
})

test(
  'the limiter starts while Redis is unavailable, decides locally, and connects later',
  async () => {
    const port = await freePort()
    const own = await startLimiter({ rules, redisPort: port })
    try {
      const before = await own.decide({ tight: 'a' })
      expect([before.overallCode, before.statuses[0]?.limitRemaining]).toEqual(['OK', 3])
      const server = await startRedis([], { port })
      try {
        await waitFor('counters in Redis', async () => {
          await own.decide({ tight: fresh() })
          const client = clientOf(port)
          const size = await client.dbsize()
          client.disconnect()
          return size > 0
        })
      } finally {
        await server.close()
      }
    } finally {
      await own.stop()
    }
  },
  TEST_MS_MAX,
)
