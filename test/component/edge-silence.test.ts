// The edge while its limiter is killed, hangs, is slow, and comes back: nothing fails, the local
// limit binds each client, and the shared one is back within 2 s. Real Envoy, limiter and Redis.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { freePort } from '../parts/free-ports.ts'
import { type RedisServer, startRedis } from '../parts/redis.ts'
import { type Edge, type Pod, startEdge, startPod, untilLimited } from './edge.ts'
import { type Limiter, startLimiter } from './limiter.ts'
import { type Answer, headerOf, headersOf, jsonOf } from './raw-http.ts'
import { waitFor } from './wait-for.ts'
import { tookBesidePauses } from './watch-pauses.ts'

const SETUP_MS_MAX = 400_000 // parts may have to be fetched
const TEST_MS_MAX = 60_000
const BACK_MS_MAX = 2000
/**
 * How late a slow limiter is: beyond a pause of the machine that lets Envoy read it first, and soon
 * enough for health checks (0.5 s), so that only its late answers take it out.
 */
const LATE_MS = 400
/** The local limit here; the shared one is far above it. */
const BURST = 20
const settings = { redirectBurst: BURST, redirectPerSecond: 1 }
const rules = `
domain: edge
descriptors:
  - key: route
    value: redirect
    descriptors:
      - key: client
        rate_limit: {name: shared, unit: hour, requests_per_unit: 1000000}
`

let redis: RedisServer
let limiter: Limiter
let proxy: FaultProxy
let pod: Pod
let edge: Edge
let clients = 0

const begin = (port: number) =>
  startLimiter({ rules, redisPort: redis.port, env: { GRPC_PORT: String(port) } })

beforeAll(async () => {
  redis = await startRedis()
  limiter = await begin(await freePort())
  proxy = await startFaultProxy({ to: { host: '127.0.0.1', port: limiter.grpcPort } })
  pod = await startPod()
  edge = await startEdge({ podPort: pod.port, limiterPorts: [proxy.port], settings })
}, SETUP_MS_MAX)

afterAll(async () => {
  await edge.stop()
  pod.close()
  await proxy.close()
  await limiter.stop()
  await redis.close()
})

beforeEach(() => untilLimited(edge))

/** A client that nobody has been yet. */
const newClient = () => `198.51.100.${String(++clients)}`
const isShared = (answer: Answer) => headerOf(answer, 'X-RateLimit-Limit') === '1000000'

/** Waits until the edge decides without the limiter; until then all is let pass. */
async function untilSilent(): Promise<void> {
  const client = newClient()
  await waitFor('the edge to decide alone', async () => {
    const answer = await edge.ask({ path: '/a', client })
    expect([302, 429]).toContain(answer.status)
    return answer.status === 429
  })
}

/** How long until an answer tells of the shared limit again, beside a pause of the machine. */
function msUntilShared(): Promise<number> {
  return tookBesidePauses(() =>
    waitFor('the shared limit', async () =>
      isShared(await edge.ask({ path: '/a', client: newClient() })),
    ),
  )
}

/** Two clients without the limiter: each has its own bucket, and is told so in our words. */
async function expectLocalLimits(): Promise<void> {
  for (const client of [newClient(), newClient()]) {
    const answers: Answer[] = []
    const beginMs = Date.now()
    for (let n = 0; n < 2 * BURST; n++) answers.push(await edge.ask({ path: '/a', client }))
    const seconds = (Date.now() - beginMs) / 1000
    const admitted = answers.filter(({ status }) => status === 302)
    expect(admitted.length).toBeGreaterThanOrEqual(BURST)
    expect(admitted.length).toBeLessThanOrEqual(BURST + Math.ceil(seconds))
    for (const answer of admitted) {
      for (const name of ['Limit', 'Remaining', 'Reset', 'After']) {
        expect(headersOf(answer, `X-RateLimit-${name}`)).toEqual([])
      }
    }
    for (const answer of answers.filter(({ status }) => status !== 302)) {
      expect(answer.status).toBe(429)
      expect(jsonOf(answer)).toMatchObject({ rule: 'local', status: 429 })
      expect(jsonOf(answer)['request_id']).toBe(headerOf(answer, 'X-Request-Id'))
      expect(headerOf(answer, 'Content-Type')).toBe('application/problem+json')
      expect(headerOf(answer, 'Retry-After')).toBe('1')
      expect(headerOf(answer, 'X-RateLimit-Limit')).toBe(String(BURST))
      expect(headerOf(answer, 'X-RateLimit-Remaining')).toBe('0')
      const inSeconds = Number(headerOf(answer, 'X-RateLimit-Reset')) - beginMs / 1000
      expect(inSeconds).toBeGreaterThan(0)
      expect(inSeconds).toBeLessThan(seconds + 1.1)
    }
  }
}

test('with its limiter the local limit binds nobody', async () => {
  const client = newClient()
  for (let n = 0; n < 3 * BURST; n++)
    expect((await edge.ask({ path: '/a', client })).status).toBe(302)
})

test(
  'killed and started again',
  async () => {
    limiter.child.kill('SIGKILL')
    await limiter.ended
    await untilSilent()
    await expectLocalLimits()
    limiter = await begin(limiter.grpcPort)
    expect(await msUntilShared()).toBeLessThan(BACK_MS_MAX)
  },
  TEST_MS_MAX,
)

test(
  'hung, which costs nothing once it is known, and resumed',
  async () => {
    limiter.child.kill('SIGSTOP')
    try {
      await untilSilent()
      const lateBefore = await edge.envoy.stat('^cluster.ratelimit.upstream_rq_timeout$')
      await expectLocalLimits()
      // Of these 80 requests only those wait for it that try whether it is back.
      const late = (await edge.envoy.stat('^cluster.ratelimit.upstream_rq_timeout$')) - lateBefore
      expect(late).toBeLessThan(40)
    } finally {
      limiter.child.kill('SIGCONT')
    }
    expect(await msUntilShared()).toBeLessThan(BACK_MS_MAX)
  },
  TEST_MS_MAX,
)

test(
  'slow, again and again too late, and quick again',
  async () => {
    proxy.delay(LATE_MS)
    try {
      await untilSilent()
      await expectLocalLimits()
    } finally {
      await proxy.heal()
    }
    expect(await msUntilShared()).toBeLessThan(BACK_MS_MAX)
  },
  TEST_MS_MAX,
)
