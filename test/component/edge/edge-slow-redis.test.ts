// The edge in front of three limiters with a slow Redis: the limiters admit at most 1.2 times the
// limit plus one hit each. In addition, Envoy admits requests by its local limit if no limiter
// responds within Envoy's timeout: at most one for each such call. Real Envoys, limiters and Redis.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type Edge, type Pod, startEdge, startPod, waitUntilLimited } from '../../kit/edge/edge.ts'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import {
  type RawRequest,
  type RawResponse,
  headerOf,
  jsonOf,
  openConnection,
} from '../../kit/http/raw-http.ts'
import { createRandom, newSeed } from '../../kit/random.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the download of dependencies
const TEST_MS_MAX = 180_000
const REPLICAS = 3
const BURST = 90
const PER_SECOND = 30
/** Callers of each rule at each edge. */
const CALLERS = 4
const RUN_MS = 1500
/** On a busy machine, callers continue until they have sent this many requests. */
const SENT_MIN = 3 * BURST
const PACE_MS = 8
const CHANGE_EVERY_MS = 20

const rules = `
domain: edge
descriptors:
  - key: route
    value: redirect
    descriptors:
      - key: client
        rate_limit:
          name: bucket
          algorithm: token_bucket
          unit: second
          requests_per_unit: ${PER_SECOND}
          burst: ${BURST}
  - key: route
    value: create
    descriptors:
      - key: client
        rate_limit: {name: window, unit: year, requests_per_unit: ${BURST}}
`
const requests: Record<'bucket' | 'window', RawRequest> = {
  bucket: { path: '/a' },
  window: { method: 'POST', path: '/v1/urls', body: '{}' },
}
type RuleName = keyof typeof requests

let redis: RedisServer
let proxies: readonly FaultProxy[]
let limiters: readonly Limiter[]
let pod: Pod
/** An edge that waits for every decision of a limiter, even on a busy machine. */
let patient: Edge
/** An edge with the timeout of the product. */
let shipped: Edge
let clients = 0

beforeAll(async () => {
  redis = await startRedis()
  const to = { host: '127.0.0.1', port: redis.port }
  proxies = await Promise.all(Array.from({ length: REPLICAS }, () => startFaultProxy({ to })))
  const env = { LIMIT_REPLICAS: String(REPLICAS) }
  const start = ({ port }: FaultProxy) => startLimiter({ rules, redisPort: port, env })
  limiters = await Promise.all(proxies.map(start))
  for (const { log } of limiters) {
    await waitFor('Redis', () => log.some(({ msg }) => msg === 'Redis available'))
  }
  pod = await startPod()
  const options = {
    podPort: pod.port,
    limiterPorts: limiters.map((one) => one.grpcPort),
    settings: {
      ...{ redirectBurst: BURST, redirectPerSecond: PER_SECOND },
      ...{ createBurst: BURST, createPerSecond: 1 },
    },
  }
  patient = await startEdge({ ...options, limiterTimeout: '10s' })
  shipped = await startEdge(options)
}, SETUP_MS_MAX)

beforeEach(async () => {
  for (const edge of [patient, shipped]) await waitUntilLimited(edge)
})

afterEach(async () => {
  for (const proxy of proxies) await proxy.heal()
})

afterAll(async () => {
  for (const edge of [patient, shipped]) await edge.stop()
  pod.close()
  for (const limiter of limiters) await limiter.stop()
  // Node.js does not close a socket that is reset during its shutdown, and then does not exit.
  await waitFor('closed connections', () => proxies.every((one) => one.connections() === 0))
  for (const proxy of proxies) await proxy.close()
  await redis.close()
}, TEST_MS_MAX)

/** What the callers of one rule received. */
interface Received {
  readonly responses: readonly RawResponse[]
  readonly seconds: number
}

/** Sends the requests of a new client to an edge, concurrently, beyond the limit of the rule. */
async function sendBeyond(edge: Edge, rule: RuleName): Promise<Received> {
  const headers = { 'X-Forwarded-For': `198.51.100.${String(++clients)}` }
  const responses: RawResponse[] = []
  const startMs = performance.now()
  const isRunning = () => performance.now() < startMs + RUN_MS || responses.length < SENT_MIN
  const call = async () => {
    const connection = await openConnection(edge.port)
    while (isRunning()) {
      responses.push(await connection.exchange({ ...requests[rule], headers }))
      await sleep(PACE_MS)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: CALLERS }, call))
  return { responses, seconds: (performance.now() - startMs) / 1000 }
}

/** The number of requests admitted by a limiter, and by Envoy alone. */
function admittedOf({ responses }: Received, rule: RuleName) {
  const admitted = { byLimiter: 0, byEnvoy: 0 }
  for (const response of responses) {
    expect([302, 201, 429]).toContain(response.status)
    if (response.status === 429) expect([rule, 'local']).toContain(jsonOf(response)['rule'])
    else if (headerOf(response, 'X-RateLimit-Limit') === undefined) admitted.byEnvoy++
    else admitted.byLimiter++
  }
  return admitted
}

/** The bound of the limiters: 1.2 times what the rule admits, plus one hit per limiter. */
function boundOf({ seconds }: Received, rule: RuleName): number {
  const limit = rule === 'window' ? BURST : BURST + PER_SECOND * seconds
  return 1.2 * limit + REPLICAS
}

/** The number of calls of an edge to which no limiter responded. */
const undecided = (edge: Edge) => edge.envoy.stat('^cluster.(redirect|create).ratelimit.error$')

const seed = newSeed()
process.stdout.write(`slow Redis behind the edge, seed ${String(seed)}\n`)
const random = createRandom(seed)
/** The delay of Redis for one limiter, in ms, around the limiters' deadline of 15 ms. */
const cases: Record<string, () => number> = {
  '5 ms': () => 5,
  '12 ms': () => 12,
  '20 ms': () => 20,
  '40 ms': () => 40,
  'random times around the deadline': () => 5 + random.int(26),
}

test.each(Object.entries(cases))(
  'three limiters behind the edge admit at most 1.2 times the limit with Redis delayed by %s',
  async (_, delay) => {
    const change = () => {
      for (const proxy of proxies) proxy.delay(delay())
    }
    change()
    const changing = setInterval(change, CHANGE_EVERY_MS)
    const undecidedBefore = await undecided(shipped)
    const runs = [patient, shipped].flatMap((edge) =>
      (['bucket', 'window'] as const).map(async (rule) => {
        const received = await sendBeyond(edge, rule)
        return { edge, bound: boundOf(received, rule), ...admittedOf(received, rule) }
      }),
    )
    const admitted = await Promise.all(runs).finally(() => {
      clearInterval(changing)
    })
    for (const { edge, bound, byLimiter, byEnvoy } of admitted) {
      if (edge === patient) expect(byEnvoy).toBe(0)
      expect(byLimiter).toBeLessThanOrEqual(bound)
      expect(byLimiter + byEnvoy).toBeGreaterThanOrEqual((0.2 * BURST) / REPLICAS)
    }
    const byEnvoy = admitted.reduce((sum, one) => sum + one.byEnvoy, 0)
    expect(byEnvoy).toBeLessThanOrEqual((await undecided(shipped)) - undecidedBefore)
  },
  TEST_MS_MAX,
)
