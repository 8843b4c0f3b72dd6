// The limits of the edge, by a real Envoy, two real limiters and Redis, with the rules that are
// shipped: who is charged, how often the limiter is asked, and what clients are told.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { type RedisServer, startRedis } from '../parts/redis.ts'
import { BASE_URL, type Edge, type Pod, startEdge, startPod, untilLimited } from './edge.ts'
import { type Limiter, startExactLimiter } from './limiter.ts'
import { type Answer, headerOf, headersOf, jsonOf } from './raw-http.ts'
import { waitFor } from './wait-for.ts'

const SETUP_MS_MAX = 400_000 // parts may have to be fetched
const KEY = 'a-key-of-a-test'
const shown = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

let redis: RedisServer
let limiters: readonly Limiter[] = []
let pod: Pod
let edge: Edge

beforeAll(async () => {
  const shipped = await readFile(new URL('../../envoy/rate-limits.yaml', import.meta.url), 'utf8')
  const hash = createHash('sha256').update(KEY).digest('hex')
  const rules = shipped.replace(/sha256:0{64}/, `sha256:${hash}`)
  redis = await startRedis()
  const start = () => startExactLimiter({ rules, redisPort: redis.port, env: { BASE_URL } })
  limiters = await Promise.all([start(), start()])
  pod = await startPod()
  edge = await startEdge({ podPort: pod.port, ...asked() })
}, SETUP_MS_MAX)

afterAll(async () => {
  await edge.stop()
  pod.close()
  for (const limiter of limiters) await limiter.stop()
  await redis.close()
})

beforeEach(async () => {
  await untilLimited(edge)
  pod.statuses.clear()
  pod.seen.length = 0
})

/** Both limiters, with time enough to answer on a busy machine. */
function asked() {
  return { limiterPorts: limiters.map((one) => one.grpcPort), limiterTimeout: '10s' }
}

/** Sum of a counter of both limiters. */
async function counted(pattern: RegExp): Promise<number> {
  const pages = await Promise.all(
    limiters.map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
  )
  const lines = pages.flatMap((page) => page.split('\n').filter((line) => pattern.test(line)))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

const calls = () => counted(/^ratelimit_service_response_time_seconds_count/)
const unknowns = () => counted(/^ratelimit_service_rate_limit_total_hits.*route_unknown/)

/** The limit's headers, each of which must be there once. */
function limitOf(answer: Answer): { limit: number; remaining: number; reset: number } {
  const [limit = NaN, remaining = NaN, reset = NaN] = shown.map((name) => {
    const values = headersOf(answer, name)
    expect([name, values.length]).toEqual([name, 1])
    return Number(values[0])
  })
  return { limit, remaining, reset }
}

const create = (client: string, headers: Record<string, string> = {}) =>
  edge.ask({ method: 'POST', path: '/v1/urls', body: '{}', client, headers })

/**
 * Creates one after the other; each is to leave so much, and what was refilled since the first at
 * the most: 2 a second.
 */
async function expectLeft(creates: readonly (() => Promise<Answer>)[], left: readonly number[]) {
  const beginMs = performance.now()
  for (const [at, ask] of creates.entries()) {
    const { remaining } = limitOf(await ask())
    const refilled = Math.floor((2 * (performance.now() - beginMs)) / 1000)
    expect(remaining).toBeGreaterThanOrEqual(left[at] ?? NaN)
    expect(remaining).toBeLessThanOrEqual((left[at] ?? NaN) + refilled)
  }
}

describe('who is charged', () => {
  test('a create of an address: 20 at once; each answer has the headers once', async () => {
    const beginMs = performance.now()
    const answers = await Promise.all(Array.from({ length: 24 }, () => create('192.0.2.10')))
    const seconds = (performance.now() - beginMs) / 1000
    const admitted = answers.filter(({ status }) => status === 201)
    expect(admitted.length).toBeGreaterThanOrEqual(20)
    expect(admitted.length).toBeLessThanOrEqual(20 + Math.ceil(2 * seconds)) // 2 more each second
    for (const answer of answers) {
      expect(limitOf(answer).limit).toBe(20)
      expect(headersOf(answer, 'X-Request-Id')).toHaveLength(1)
    }
  })

  test('hosts of one /64 together, and of another apart', async () => {
    const addresses = ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:ffff::1', '2001:db8:1:3::1']
    const creates = addresses.map((address) => () => create(address))
    await expectLeft(creates, [19, 18, 19])
  })

  test('by the address that the trusted proxy saw; what is forged changes nothing', async () => {
    const forged = ['6.6.6.6, 192.0.2.20', '7.7.7.7, 192.0.2.20']
    const creates = forged.map((client) => () => create(client))
    await expectLeft(creates, [19, 18])
  })

  test('a known key in place of its address; an unknown one changes nothing', async () => {
    const client = '192.0.2.30'
    const unknown = () => create(client, { 'X-API-Key': 'guessed' })
    const afterKnown = async () => {
      const known = limitOf(await create(client, { 'X-API-Key': KEY }))
      expect(known).toMatchObject({ limit: 200, remaining: 199 })
      return create(client)
    }
    await expectLeft([unknown, afterKnown], [19, 18])
    expect(pod.seen.map(({ headers }) => headers['x-api-key'])).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    await waitFor('the log', async () =>
      (await edge.log()).some(({ client: who }) => who === client),
    )
    expect(JSON.stringify(await edge.log())).not.toContain(KEY)
  })

  test('pages by nobody', async () => {
    const before = await calls()
    for (const path of ['/', '/docs', '/openapi.json', '/assets/page.css', '/a/b']) {
      const answer = await edge.ask({ path, client: '192.0.2.40' })
      for (const name of shown) expect(headersOf(answer, name)).toEqual([])
    }
    expect(await calls()).toBe(before)
  })

  test('whatever might create, by whatever method and path', async () => {
    for (const [at, path] of ['/', '/v1/urls', '/v1//urls', '/abc', '/%761/urls'].entries()) {
      const answer = await edge.ask({ method: 'PUT', path, client: '192.0.2.41' })
      expect(limitOf(answer).remaining).toBeGreaterThanOrEqual(19 - at)
      expect(limitOf(answer).limit).toBe(20)
    }
  })
})

describe('a look-up', () => {
  const follow = (path: string, client: string) => edge.ask({ path, client })

  test('costs one call; one that finds nothing two', async () => {
    pod.statuses.set('/none', 404)
    const [callsBefore, unknownBefore] = [await calls(), await unknowns()]
    for (let n = 0; n < 10; n++) limitOf(await follow('/known', '192.0.2.50'))
    expect((await calls()) - callsBefore).toBe(10)
    for (let n = 0; n < 10; n++) expect((await follow('/none', '192.0.2.50')).status).toBe(404)
    await waitFor('the charges', async () => (await unknowns()) - unknownBefore === 10)
    expect((await calls()) - callsBefore).toBe(30)
  })

  test('that fails or is refused is no unknown code', async () => {
    pod.statuses.set('/down', 503).set('/odd', 405)
    const before = await calls()
    for (const path of ['/down', '/odd', '/down']) await follow(path, '192.0.2.51')
    expect((await calls()) - before).toBe(3)
  })

  test('keeps the headers of the pod', async () => {
    const answer = await follow('/known', '192.0.2.52')
    expect(answer.status).toBe(302)
    expect(headerOf(answer, 'Location')).toBe('https://example.org/A%2fb')
    expect(headerOf(answer, 'Cache-Control')).toBe('private, no-store')
    expect(headerOf(answer, 'Referrer-Policy')).toBe('no-referrer-when-downgrade')
    expect(headerOf(answer, 'X-Robots-Tag')).toBe('noindex')
    expect(answer.headers.filter(([name]) => /^(x-envoy|server)/i.test(name))).toEqual([])
    expect(headerOf(answer, 'X-Request-Id')).toBe(pod.seen[0]?.headers['x-request-id'])
  })

  test('of a client that walked through unknown codes is refused, known or not', async () => {
    pod.statuses.set('/none', 404)
    const walker = '2001:db8:9:9::1'
    const before = await unknowns()
    // What was counted before the minute ends weighs less and less after it.
    await waitFor('a minute with time left', () => Date.now() % 60_000 < 45_000)
    for (let n = 0; n < 60; n++) expect((await follow('/none', walker)).status).toBe(404)
    await waitFor('the charges', async () => (await unknowns()) - before === 60)
    const refused = await follow('/known', walker)
    expect(refused.status).toBe(429)
    expect(jsonOf(refused)['rule']).toBe('unknown-codes-per-ipv6-client')
    expect(limitOf(refused)).toMatchObject({ limit: 60, remaining: 0 })
    expect((await follow('/known', '2001:db8:9:8::1')).status).toBe(302)
  })
})

describe('a denial', () => {
  test('is our problem document, with the id of its request', async () => {
    const client = '192.0.2.60'
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(client)))
    const denied = answers.filter(({ status }) => status === 429)
    expect(denied.length).toBeGreaterThan(0)
    for (const answer of denied) {
      expect(headerOf(answer, 'Content-Type')).toBe('application/problem+json')
      const wait = headerOf(answer, 'Retry-After')
      expect(jsonOf(answer)).toEqual({
        type: `${BASE_URL}/problems/rate-limited`,
        title: 'Too many requests',
        status: 429,
        detail: `The limit creates-per-client is used up: retry in ${String(wait)} s`,
        rule: 'creates-per-client',
        request_id: headerOf(answer, 'X-Request-Id'),
      })
      expect(limitOf(answer).remaining).toBe(0)
    }
  })

  test('says honestly when to come again', async () => {
    const client = '192.0.2.61'
    let answer = await create(client)
    while (answer.status === 201) answer = await create(client)
    const beginMs = performance.now()
    const waitMs = Number(headerOf(answer, 'Retry-After')) * 1000
    expect(waitMs).toBe(1000)
    await waitFor('that time', () => performance.now() - beginMs >= waitMs)
    expect((await create(client)).status).toBe(201)
  })
})

test('without a trusted proxy a client is who connects, whatever it sends', async () => {
  const bare = await startEdge({ podPort: pod.port, settings: { trustedHops: 0 }, ...asked() })
  await untilLimited(bare)
  const creates = ['192.0.2.70', '192.0.2.71'].map(
    (client) => () => bare.ask({ method: 'POST', path: '/', body: '', client }),
  )
  try {
    await expectLeft(creates, [19, 18])
  } finally {
    await bare.stop()
  }
})
