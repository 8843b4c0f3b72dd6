// Three replicas of the `ratelimit` role with a Redis that is slow for all or some of them, always
// or at times: together they admit at most 1.2 times the limit plus one hit per replica.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const REPLICAS = 3
const LIMIT = 300
const CALLERS = 12
const RUN_MS = 1500

const rules = `
domain: shop
descriptors:
  - {key: window, rate_limit: {unit: year, requests_per_unit: ${LIMIT}}}
  - key: bucket
    rate_limit: {algorithm: token_bucket, unit: year, requests_per_unit: ${LIMIT}}
`

let redis: RedisServer
let proxies: readonly FaultProxy[]
let replicas: readonly Limiter[]

beforeAll(async () => {
  redis = await startRedis()
  const to = { host: '127.0.0.1', port: redis.port }
  const starts = Array.from({ length: REPLICAS }, () => startFaultProxy({ to }))
  proxies = await Promise.all(starts)
  replicas = await Promise.all(
    proxies.map(({ port }) =>
      startLimiter({ rules, redisPort: port, env: { LIMIT_REPLICAS: String(REPLICAS) } }),
    ),
  )
  for (const { log } of replicas) {
    await waitFor('Redis', () => log.some(({ msg }) => msg === 'Redis available'))
  }
}, SETUP_MS_MAX)

afterEach(async () => {
  for (const proxy of proxies) await proxy.heal()
})

afterAll(async () => {
  for (const replica of replicas) await replica.stop()
  for (const proxy of proxies) await proxy.close()
  await redis.close()
}, TEST_MS_MAX)

/** Calls of a caller, even if a pause of the machine exceeds RUN_MS: enough to reach the limit. */
const CALLS_MIN = LIMIT / CALLERS

/** Calls concurrently; calls `change` every 100 ms. Returns the number of admitted hits by key. */
async function callConcurrently(value: string, change: (turn: number) => void) {
  const endMs = performance.now() + RUN_MS
  const admitted = { window: 0, bucket: 0 }
  let turn = 0
  change(turn)
  const changing = setInterval(() => {
    change(++turn)
  }, 100)
  const run = async (caller: number, key: keyof typeof admitted) => {
    for (let call = 0; performance.now() < endMs || call < CALLS_MIN; call++) {
      const reply = await replicas[(caller + call) % REPLICAS]?.decide({ [key]: value })
      if (reply?.overallCode === 'OK') admitted[key]++
    }
  }
  const callers = Array.from({ length: CALLERS }, (_, caller) => caller)
  try {
    await Promise.all(callers.flatMap((caller) => [run(caller, 'window'), run(caller, 'bucket')]))
  } finally {
    clearInterval(changing)
  }
  return admitted
}

/** The delay of Redis for a replica at a turn, in ms. */
const cases: Record<string, (turn: number, replica: number) => number> = {
  'always delayed by 30 ms': () => 30,
  'always delayed by 200 ms': () => 200,
  'delayed for one replica': (_, replica) => (replica === 0 ? 200 : 0),
  'delayed at times': (turn) => (turn % 5 < 3 ? 100 : 0),
  'delayed for each replica in turn': (turn, replica) =>
    (turn >> 1) % REPLICAS === replica ? 150 : 0,
  'delayed after 200 ms': (turn) => (turn < 2 ? 0 : 250),
}

test.each(Object.entries(cases))(
  'the replicas admit at most 1.2 times the limit with a Redis that is %s',
  async (name, delay) => {
    const admitted = await callConcurrently(name, (turn) => {
      proxies.forEach((proxy, replica) => {
        proxy.delay(delay(turn, replica))
      })
    })
    for (const hits of Object.values(admitted)) {
      expect(hits).toBeLessThanOrEqual(1.2 * LIMIT + REPLICAS)
      expect(hits).toBeGreaterThan(0.1 * LIMIT)
    }
  },
  TEST_MS_MAX,
)
