// The edge while its limiter is killed, hangs, times out, and recovers: no request fails, the local
// limit applies to each client, and the shared limit applies within 2 s of the recovery. Real
// Envoy, limiter and Redis.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type Edge, type Pod, startEdge, startPod, waitUntilLimited } from '../../kit/edge/edge.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { type RawResponse, headerOf, headersOf, jsonOf } from '../../kit/http/raw-http.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutPauses } from '../../kit/watch-pauses.ts'

const SETUP_MS_MAX = 400_000 // includes the download of dependencies
const TEST_MS_MAX = 180_000
const RECOVERY_MS_MAX = 2000
/**
 * The delay of a slow limiter: long enough that Envoy times out even after a pause of the machine,
 * and below the timeout of health checks (0.5 s), so that only timed-out responses eject it.
 */
const SLOW_MS = 400
/** The local limit in this test; the shared limit is much higher. */
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

const startOn = (port: number) =>
  startLimiter({ rules, redisPort: redis.port, env: { GRPC_PORT: String(port) } })

beforeAll(async () => {
  redis = await startRedis()
  limiter = await startOn(await freePort())
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

beforeEach(() => waitUntilLimited(edge))

/** A new client address. */
const newClient = () => `198.51.100.${String(++clients)}`
const isShared = (response: RawResponse) => headerOf(response, 'X-RateLimit-Limit') === '1000000'

/** Waits until the edge decides without the limiter; until then it admits every request. */
async function waitUntilLocal(): Promise<void> {
  const client = newClient()
  await waitFor('the edge to apply the local limit', async () => {
    const response = await edge.send({ path: '/a', client })
    expect([302, 429]).toContain(response.status)
    return response.status === 429
  })
}

/** The time until a response has the shared limit, without pauses of the machine. */
function msUntilShared(): Promise<number> {
  return durationWithoutPauses(() =>
    waitFor('the shared limit', async () =>
      isShared(await edge.send({ path: '/a', client: newClient() })),
    ),
  )
}

/** Verifies the local limit of reports of abuse, by the default settings. */
async function expectLocalReports(): Promise<void> {
  const client = newClient()
  const statuses: number[] = []
  for (let n = 0; n < 12; n++) {
    statuses.push((await edge.send({ method: 'POST', path: '/abuse', client })).status)
  }
  expect(statuses).toEqual([...Array<number>(10).fill(201), 429, 429])
}

/**
 * Verifies the local limit: each of two clients has its own bucket, and is denied with our problem
 * document.
 */
async function expectLocalLimits(): Promise<void> {
  await expectLocalReports()
  for (const client of [newClient(), newClient()]) {
    const responses: RawResponse[] = []
    const startMs = Date.now()
    for (let n = 0; n < 2 * BURST; n++) responses.push(await edge.send({ path: '/a', client }))
    const seconds = (Date.now() - startMs) / 1000
    const admitted = responses.filter(({ status }) => status === 302)
    expect(admitted.length).toBeGreaterThanOrEqual(BURST)
    expect(admitted.length).toBeLessThanOrEqual(BURST + Math.ceil(seconds))
    for (const response of admitted) {
      for (const name of ['Limit', 'Remaining', 'Reset', 'After']) {
        expect(headersOf(response, `X-RateLimit-${name}`)).toEqual([])
      }
    }
    for (const response of responses.filter(({ status }) => status !== 302)) {
      expect(response.status).toBe(429)
      expect(jsonOf(response)).toMatchObject({ rule: 'local', status: 429 })
      expect(jsonOf(response)['request_id']).toBe(headerOf(response, 'X-Request-Id'))
      expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
      expect(headerOf(response, 'Retry-After')).toBe('1')
      expect(headerOf(response, 'X-RateLimit-Limit')).toBe(String(BURST))
      expect(headerOf(response, 'X-RateLimit-Remaining')).toBe('0')
      const inSeconds = Number(headerOf(response, 'X-RateLimit-Reset')) - startMs / 1000
      expect(inSeconds).toBeGreaterThan(0)
      expect(inSeconds).toBeLessThan(seconds + 1.1)
    }
  }
}

test('the edge does not apply the local limit while the limiter is available', async () => {
  const responses: RawResponse[] = []
  // While the limiter is paused by the machine, the local limit applies to the client.
  await waitFor('the shared limit in each response', async () => {
    const client = newClient()
    responses.length = 0
    do responses.push(await edge.send({ path: '/a', client }))
    while (responses.every(isShared) && responses.length < BURST + 5)
    return responses.every(isShared)
  })
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([302]))
})

test(
  'the edge applies the local limit while the limiter is killed, and then the shared limit',
  async () => {
    limiter.child.kill('SIGKILL')
    await limiter.exited
    await waitUntilLocal()
    await expectLocalLimits()
    limiter = await startOn(limiter.grpcPort)
    expect(await msUntilShared()).toBeLessThan(RECOVERY_MS_MAX)
  },
  TEST_MS_MAX,
)

test(
  'the edge applies the local limit while the limiter hangs, which delays few requests',
  async () => {
    limiter.child.kill('SIGSTOP')
    try {
      await waitUntilLocal()
      const timeoutsBefore = await edge.envoy.stat('^cluster.ratelimit.upstream_rq_timeout$')
      await expectLocalLimits()
      // Of these 80 requests, only the probes for a recovery of the limiter wait.
      const timeouts =
        (await edge.envoy.stat('^cluster.ratelimit.upstream_rq_timeout$')) - timeoutsBefore
      expect(timeouts).toBeLessThan(40)
    } finally {
      limiter.child.kill('SIGCONT')
    }
    expect(await msUntilShared()).toBeLessThan(RECOVERY_MS_MAX)
  },
  TEST_MS_MAX,
)

test(
  'the edge applies the local limit while the limiter times out, and then the shared limit',
  async () => {
    proxy.delay(SLOW_MS)
    try {
      await waitUntilLocal()
      await expectLocalLimits()
    } finally {
      await proxy.heal()
    }
    expect(await msUntilShared()).toBeLessThan(RECOVERY_MS_MAX)
  },
  TEST_MS_MAX,
)
