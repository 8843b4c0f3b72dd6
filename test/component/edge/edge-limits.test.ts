// The limits of the edge, with a real Envoy, two real limiters, Redis and the shipped rules: the
// client against which a request counts, the number of limiter calls, and the response headers.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  BASE_URL,
  type Edge,
  type Pod,
  startEdge,
  startPod,
  waitUntilLimited,
} from '../../kit/edge/edge.ts'
import { type Limiter, startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import { type RawResponse, headerOf, headersOf, jsonOf } from '../../kit/http/raw-http.ts'
import { waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the download of dependencies
const KEY = 'a-key-of-a-test'
const headerNames = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

let redis: RedisServer
let limiters: readonly Limiter[] = []
let pod: Pod
let edge: Edge

beforeAll(async () => {
  const shipped = await readFile(
    new URL('../../../envoy/rate-limits.yaml', import.meta.url),
    'utf8',
  )
  const hash = createHash('sha256').update(KEY).digest('hex')
  const rules = shipped.replace(/sha256:0{64}/, `sha256:${hash}`)
  redis = await startRedis()
  const start = () => startExactLimiter({ rules, redisPort: redis.port, env: { BASE_URL } })
  limiters = await Promise.all([start(), start()])
  pod = await startPod()
  edge = await startEdge({ podPort: pod.port, ...limiterSettings() })
}, SETUP_MS_MAX)

afterAll(async () => {
  await edge.stop()
  pod.close()
  for (const limiter of limiters) await limiter.stop()
  await redis.close()
})

beforeEach(async () => {
  await waitUntilLimited(edge)
  pod.statuses.clear()
  pod.requests.length = 0
})

/** Both limiters, with a timeout for a busy machine. */
function limiterSettings() {
  return { limiterPorts: limiters.map((one) => one.grpcPort), limiterTimeout: '10s' }
}

/** The sum of a counter over both limiters. */
async function sumOf(pattern: RegExp): Promise<number> {
  const pages = await Promise.all(
    limiters.map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
  )
  const lines = pages.flatMap((page) => page.split('\n').filter((line) => pattern.test(line)))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

const calls = () => sumOf(/^ratelimit_service_response_time_seconds_count/)
const unknowns = () => sumOf(/^ratelimit_service_rate_limit_total_hits.*route_unknown/)

/** The values of the rate-limit headers; verifies that each occurs once. */
function limitOf(response: RawResponse): { limit: number; remaining: number; reset: number } {
  const [limit = NaN, remaining = NaN, reset = NaN] = headerNames.map((name) => {
    const values = headersOf(response, name)
    expect([name, values.length]).toEqual([name, 1])
    return Number(values[0])
  })
  return { limit, remaining, reset }
}

const create = (client: string, headers: Record<string, string> = {}) =>
  edge.send({ method: 'POST', path: '/v1/urls', body: '{}', client, headers })

/**
 * Sends creates sequentially; each must leave the tokens in `left`, plus at most the 2 tokens per
 * second that were refilled since the first.
 */
async function expectRemaining(
  creates: readonly (() => Promise<RawResponse>)[],
  left: readonly number[],
) {
  const startMs = performance.now()
  for (const [at, send] of creates.entries()) {
    const { remaining } = limitOf(await send())
    const refilled = Math.floor((2 * (performance.now() - startMs)) / 1000)
    expect(remaining).toBeGreaterThanOrEqual(left[at] ?? NaN)
    expect(remaining).toBeLessThanOrEqual((left[at] ?? NaN) + refilled)
  }
}

describe('a request counts', () => {
  test('against its address: a burst of 20; each response has the headers once', async () => {
    const startMs = performance.now()
    const responses = await Promise.all(Array.from({ length: 24 }, () => create('192.0.2.10')))
    const seconds = (performance.now() - startMs) / 1000
    const admitted = responses.filter(({ status }) => status === 201)
    expect(admitted.length).toBeGreaterThanOrEqual(20)
    expect(admitted.length).toBeLessThanOrEqual(20 + Math.ceil(2 * seconds)) // 2 more each second
    for (const response of responses) {
      expect(limitOf(response).limit).toBe(20)
      expect(headersOf(response, 'X-Request-Id')).toHaveLength(1)
    }
  })

  test('against the /64 of an IPv6 address', async () => {
    const addresses = ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:ffff::1', '2001:db8:1:3::1']
    const creates = addresses.map((address) => () => create(address))
    await expectRemaining(creates, [19, 18, 19])
  })

  test('against the address that the trusted proxy appended, not a forged one', async () => {
    const forged = ['6.6.6.6, 192.0.2.20', '7.7.7.7, 192.0.2.20']
    const creates = forged.map((client) => () => create(client))
    await expectRemaining(creates, [19, 18])
  })

  test('against a known API key instead of its address; an unknown key has no effect', async () => {
    const client = '192.0.2.30'
    const unknown = () => create(client, { 'X-API-Key': 'guessed' })
    const afterKeyed = async () => {
      const keyed = limitOf(await create(client, { 'X-API-Key': KEY }))
      expect(keyed).toMatchObject({ limit: 200, remaining: 199 })
      return create(client)
    }
    await expectRemaining([unknown, afterKeyed], [19, 18])
    const keys = pod.requests.map(({ headers }) => headers['x-api-key'])
    expect(keys).toEqual(['guessed', KEY, undefined])
    await waitFor('the access log', async () =>
      (await edge.log()).some((line) => line['client'] === client),
    )
    expect(JSON.stringify(await edge.log())).not.toContain(KEY)
  })

  test('and reaches its pod without the API key, unless it may create a link', async () => {
    const client = '192.0.2.31'
    for (const path of ['/docs', '/known', '/known.svg', '/', '/a/b']) {
      await edge.send({ path, client, headers: { 'X-API-Key': KEY } })
    }
    await edge.send({ method: 'POST', path: '/v1/urls', client, headers: { 'X-API-Key': KEY } })
    const keys = pod.requests.map(({ headers }) => headers['x-api-key'])
    expect(keys).toEqual([...Array.from({ length: 5 }), KEY])
  })

  test('against no limit if it is for a page', async () => {
    const before = await calls()
    for (const path of ['/', '/docs', '/abuse', '/openapi.json', '/assets/page.css', '/a/b']) {
      const response = await edge.send({ path, client: '192.0.2.40' })
      for (const name of headerNames) expect(headersOf(response, name)).toEqual([])
    }
    expect(await calls()).toBe(before)
  })

  test('as a report, with its own burst, if it is POST /abuse', async () => {
    const report = (client: string) =>
      edge.send({
        method: 'POST',
        path: '/abuse?x',
        body: 'link=a',
        client,
        headers: { 'X-API-Key': KEY },
      })
    const client = '192.0.2.42'
    for (let left = 9; left >= 0; left--) {
      const response = await report(client)
      expect([response.status, limitOf(response)]).toMatchObject([201, { limit: 10 }])
      expect(limitOf(response).remaining).toBe(left)
    }
    const denied = await report(client)
    expect([denied.status, jsonOf(denied)['rule']]).toEqual([429, 'reports-per-client'])
    expect(Number(headerOf(denied, 'Retry-After'))).toBeGreaterThan(240)
    expect((await report('192.0.2.43')).status).toBe(201)
    expect(limitOf(await create(client)).limit).toBe(20)
    expect(pod.requests[0]?.headers['x-api-key']).toBeUndefined()
  })

  test('as a create with any method and path that might create', async () => {
    for (const [at, path] of ['/', '/v1/urls', '/v1//urls', '/abuse', '/%761/urls'].entries()) {
      const response = await edge.send({ method: 'PUT', path, client: '192.0.2.41' })
      expect(limitOf(response).remaining).toBeGreaterThanOrEqual(19 - at)
      expect(limitOf(response).limit).toBe(20)
    }
  })
})

describe('a lookup', () => {
  const lookUp = (path: string, client: string) => edge.send({ path, client })

  test('costs one limiter call; a miss costs two', async () => {
    pod.statuses.set('/none', 404)
    const [callsBefore, unknownBefore] = [await calls(), await unknowns()]
    for (let n = 0; n < 10; n++) limitOf(await lookUp('/known', '192.0.2.50'))
    expect((await calls()) - callsBefore).toBe(10)
    for (let n = 0; n < 10; n++) expect((await lookUp('/none', '192.0.2.50')).status).toBe(404)
    await waitFor('the hits', async () => (await unknowns()) - unknownBefore === 10)
    expect((await calls()) - callsBefore).toBe(30)
  })

  test('that fails or is rejected does not count as an unknown code', async () => {
    pod.statuses.set('/down', 503).set('/odd', 405)
    const before = await calls()
    for (const path of ['/down', '/odd', '/down']) await lookUp(path, '192.0.2.51')
    expect((await calls()) - before).toBe(3)
  })

  test('keeps the headers of the pod’s response', async () => {
    const response = await lookUp('/known', '192.0.2.52')
    expect(response.status).toBe(302)
    expect(headerOf(response, 'Location')).toBe('https://example.org/A%2fb')
    expect(headerOf(response, 'Cache-Control')).toBe('private, no-store')
    expect(headerOf(response, 'Referrer-Policy')).toBe('no-referrer-when-downgrade')
    expect(headerOf(response, 'X-Robots-Tag')).toBe('noindex')
    expect(response.headers.filter(([name]) => /^(x-envoy|server)/i.test(name))).toEqual([])
    expect(headerOf(response, 'X-Request-Id')).toBe(pod.requests[0]?.headers['x-request-id'])
  })

  test('of a client with too many misses is denied, even if its code exists', async () => {
    pod.statuses.set('/none', 404)
    const walker = '2001:db8:9:9::1'
    const before = await unknowns()
    // After the minute, hits of the previous window weigh less and less.
    await waitFor('a minute with time left', () => Date.now() % 60_000 < 45_000)
    for (let n = 0; n < 60; n++) expect((await lookUp('/none', walker)).status).toBe(404)
    await waitFor('the hits', async () => (await unknowns()) - before === 60)
    const denied = await lookUp('/known', walker)
    expect(denied.status).toBe(429)
    expect(jsonOf(denied)['rule']).toBe('unknown-codes-per-ipv6-client')
    expect(limitOf(denied)).toMatchObject({ limit: 60, remaining: 0 })
    expect((await lookUp('/known', '2001:db8:9:8::1')).status).toBe(302)
  })
})

describe('a denial', () => {
  test('is Curtail’s problem document, with the id of its request', async () => {
    const client = '192.0.2.60'
    const responses = await Promise.all(Array.from({ length: 30 }, () => create(client)))
    const denied = responses.filter(({ status }) => status === 429)
    expect(denied.length).toBeGreaterThan(0)
    for (const response of denied) {
      expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
      const wait = headerOf(response, 'Retry-After')
      expect(jsonOf(response)).toEqual({
        type: `${BASE_URL}/problems/rate-limited`,
        title: 'Too many requests',
        status: 429,
        detail: `The limit creates-per-client is used up: retry in ${String(wait)} s`,
        rule: 'creates-per-client',
        request_id: headerOf(response, 'X-Request-Id'),
      })
      expect(limitOf(response).remaining).toBe(0)
    }
  })

  test('has a Retry-After after which the request is admitted', async () => {
    const client = '192.0.2.61'
    let response = await create(client)
    while (response.status === 201) response = await create(client)
    const startMs = performance.now()
    const waitMs = Number(headerOf(response, 'Retry-After')) * 1000
    expect(waitMs).toBe(1000)
    await waitFor('Retry-After to pass', () => performance.now() - startMs >= waitMs)
    expect((await create(client)).status).toBe(201)
  })
})

test('the edge without a trusted proxy uses the peer address as the client', async () => {
  const bare = await startEdge({
    podPort: pod.port,
    settings: { trustedHops: 0 },
    ...limiterSettings(),
  })
  await waitUntilLimited(bare)
  const creates = ['192.0.2.70', '192.0.2.71'].map(
    (client) => () => bare.send({ method: 'POST', path: '/', body: '', client }),
  )
  try {
    await expectRemaining(creates, [19, 18])
  } finally {
    await bare.stop()
  }
})
