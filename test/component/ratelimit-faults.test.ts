// The real `ratelimit` role while its Redis hangs, dies, comes back empty, is slow, refuses or is
// full, or was never there: every call is answered in time by its rule's fallback, and the shared
// count is back soon after Redis is.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { freePort } from '../parts/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import { lateCalls } from './late-calls.ts'
import { type Limiter, startLimiter } from './limiter.ts'
import { waitFor } from './wait-for.ts'
import { watchPauses } from './watch-pauses.ts'

const TEST_MS_MAX = 60_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
/** How soon the shared count is to be back. */
const BACK_MS_MAX = 1000

const rules = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: hour, requests_per_unit: 1000000}}
  - {key: tight, rate_limit: {unit: hour, requests_per_unit: 4}}
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
  await timeCalls(100) // warms everything up
}, SETUP_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  await proxy.close()
  await redis.close()
}, TEST_MS_MAX)

let values = 0
const fresh = () => `v${++values}`

/** Whether counts are shared: what one value has used is in Redis. */
async function isShared(): Promise<boolean> {
  const text = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
  if (!text.includes('curtail_limiter_store_unavailable 0')) return false
  const before = decisionsOf(text)
  await limiter.ask({ local: fresh() })
  const after = decisionsOf(await (await fetch(`${limiter.adminUrl}/metrics`)).text())
  return after > before
}

/** Decisions that Redis has made so far. */
function decisionsOf(metrics: string): number {
  const counts = metrics.matchAll(/^curtail_limiter_decisions_total\{source="store",\S+ (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Makes calls after one another; gives how many ms each took. */
async function timeCalls(calls: number): Promise<readonly number[]> {
  const tookMs: number[] = []
  for (let call = 0; call < calls; call++) {
    const begunMs = performance.now()
    const answer = await limiter.ask({ local: fresh() })
    tookMs.push(performance.now() - begunMs)
    expect(answer.overallCode).toBe('OK')
  }
  return tookMs
}

/** What each kind of rule does while Redis is away. */
async function fallsBack(): Promise<void> {
  const tight = { tight: fresh() }
  for (let call = 0; call < 4; call++) {
    expect((await limiter.ask(tight)).overallCode).toBe('OK')
  }
  expect((await limiter.ask(tight)).overallCode).toBe('OVER_LIMIT')
  const allow = { allow: fresh() }
  for (let call = 0; call < 3; call++) {
    expect((await limiter.ask(allow)).overallCode).toBe('OK')
  }
  expect((await limiter.ask({ deny: fresh() })).overallCode).toBe('OVER_LIMIT')
}

interface Fault {
  readonly begin: () => void | Promise<void>
  readonly end: () => void | Promise<void>
}

const admin = async (...command: [string, ...string[]]) => {
  const client = clientOf(redis.port)
  const [name, ...args] = command
  await client.call(name, ...args)
  client.disconnect()
}

const faults: Record<string, Fault> = {
  'that hangs': {
    begin: () => {
      redis.stop()
    },
    end: () => {
      redis.resume()
    },
  },
  'that is killed and comes back empty': {
    begin: () => redis.kill(),
    end: () => redis.restart(),
  },
  'that is slow by 200 ms': {
    begin: () => {
      proxy.delay(200)
    },
    end: () => {
      proxy.delay(0)
    },
  },
  'that refuses to run scripts': {
    begin: () => admin('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    end: () => admin('ACL', 'SETUSER', 'default', '+@all'),
  },
  'that has no memory left': {
    begin: () => admin('CONFIG', 'SET', 'maxmemory', '1'),
    end: () => admin('CONFIG', 'SET', 'maxmemory', '0'),
  },
}

describe.each(Object.entries(faults))('a Redis %s', (_, { begin, end }) => {
  test(
    'holds nobody up, and the shared count is back soon after it',
    async () => {
      await waitFor('the shared count', isShared)
      await begin()
      try {
        const pauses = watchPauses()
        const tookMs = await timeCalls(20)
        pauses.stop()
        expect(lateCalls(tookMs, pauses.longestMs())).toEqual([])
        await fallsBack()
      } finally {
        await end()
      }
      const backMs = performance.now()
      await waitFor('the shared count', isShared)
      expect(performance.now() - backMs).toBeLessThan(5 * BACK_MS_MAX)
      expect(limiter.child.exitCode).toBeNull()
    },
    TEST_MS_MAX,
  )
})

test(
  'a Redis that is not there at the start: it starts, answers, and finds it later',
  async () => {
    const port = await freePort()
    const own = await startLimiter({ rules, redisPort: port })
    try {
      const before = await own.ask({ tight: 'a' })
      expect([before.overallCode, before.statuses[0]?.limitRemaining]).toEqual(['OK', 3])
      const late = await startRedis([], { port })
      try {
        await waitFor('counters in Redis', async () => {
          await own.ask({ tight: fresh() })
          const client = clientOf(port)
          const size = await client.dbsize()
          client.disconnect()
          return size > 0
        })
      } finally {
        await late.close()
      }
    } finally {
      await own.stop()
    }
  },
  TEST_MS_MAX,
)
