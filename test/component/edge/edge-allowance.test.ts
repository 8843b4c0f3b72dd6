// The allowance, with two real Envoys, a real limiter and Redis: redirects within it cause no call,
// those beyond it the same calls as without it, and all Envoys together never exceed the rule.
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { lowerRedirectRule, splitRule } from '../../../envoy/allowance.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type Edge, type Pod, startEdge, startPod } from '../../kit/edge/edge.ts'
import { type RawResponse, headersOf, jsonOf } from '../../kit/http/raw-http.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { type Limiter, startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the download of dependencies
const rule = { burst: 40, perSecond: 10 }
const allowance = { burst: 5, perMinute: 12 }
const { limiter: lowered, edge: settings } = splitRule(rule, { allowance, buckets: 2 })
const UNKNOWN_MAX = 7
const headerNames = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

let redis: RedisServer
let limiter: Limiter
let pod: Pod
let first: Edge
let second: Edge
let plain: Edge
let clients = 0

/** The shipped rules with the limiter's share of the redirect rule. */
async function rules(): Promise<string> {
  const shipped = new URL('../../../envoy/rate-limits.yaml', import.meta.url)
  const text = lowerRedirectRule(await readFile(shipped, 'utf8'), lowered)
  return text.replace('requests_per_unit: 60\n', `requests_per_unit: ${UNKNOWN_MAX}\n`)
}

beforeAll(async () => {
  redis = await startRedis()
  limiter = await startExactLimiter({ rules: await rules(), redisPort: redis.port })
  pod = await startPod()
  const limiterPorts = [limiter.grpcPort]
  const start = (given: Parameters<typeof startEdge>[0]['settings']) =>
    startEdge({
      podPort: pod.port,
      limiterPorts,
      limiterTimeout: '10s',
      ...(given && { settings: given }),
    })
  ;[first, second, plain] = await Promise.all([start(settings), start(settings), start({})])
  for (const edge of [first, second, plain]) await waitUntilCalled(edge)
}, SETUP_MS_MAX)

afterAll(async () => {
  for (const edge of [first, second, plain]) await edge.stop()
  pod.close()
  await limiter.stop()
  await redis.close()
})

beforeEach(() => {
  pod.statuses.clear()
  pod.requests.length = 0
})

async function waitUntilCalled(edge: Edge): Promise<void> {
  await waitFor('a call of the limiter', async () => {
    await edge.send({ path: '/warm', client: '198.18.0.1' })
    return (await edge.envoy.stat('^cluster.redirect.ratelimit.ok$')) > 0
  })
}

const newClient = () => `198.51.100.${String(++clients)}`
const lookUp = (edge: Edge, client: string, path = '/known') => edge.send({ path, client })

async function sumOf(pattern: RegExp): Promise<number> {
  const page = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
  const lines = page.split('\n').filter((line) => pattern.test(line))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

const calls = () => sumOf(/^ratelimit_service_response_time_seconds_count/)
const unknowns = () => sumOf(/^ratelimit_service_rate_limit_total_hits.*route_unknown/)

/** The values of the rate-limit headers; verifies that each occurs once. */
function limitOf(response: RawResponse) {
  const [limit = NaN, remaining = NaN, reset = NaN] = headerNames.map((name) => {
    const values = headersOf(response, name)
    expect([name, values.length]).toEqual([name, 1])
    return Number(values[0])
  })
  return { limit, remaining, reset }
}

/** Uses the allowance of a client; verifies that it causes no call. */
async function useAllowance(edge: Edge, client: string): Promise<void> {
  const before = await calls()
  for (let n = 0; n < allowance.burst; n++) {
    expect((await lookUp(edge, client)).status).toBe(302)
  }
  expect((await calls()) - before).toBe(0)
}

/** The values of `limiter` in the access log of a client, in order. */
async function loggedOf(edge: Edge, client: string, count: number): Promise<unknown[]> {
  const lines = async () => (await edge.log()).filter((line) => line['client'] === client)
  await waitFor('the access log', async () => (await lines()).length === count)
  return (await lines()).map((line) => line['limiter'])
}

/** How often each distinct value occurs. */
const countsOf = (values: readonly unknown[]) =>
  Object.fromEntries(
    [...new Set(values)].map((value) => [String(value), values.filter((v) => v === value).length]),
  )

describe('within the allowance', () => {
  test('no call is sent; the headers are a lower bound', async () => {
    const client = newClient()
    const before = await calls()
    for (let n = 0; n < allowance.burst; n++) {
      const nowMs = Date.now()
      const { limit, remaining, reset } = limitOf(await lookUp(first, client))
      expect([limit, remaining]).toEqual([lowered.burst, lowered.perSecond])
      expect(reset * 1000).toBeGreaterThanOrEqual(nowMs + 1000)
      expect(reset * 1000).toBeLessThanOrEqual(Date.now() + 2000)
    }
    expect((await calls()) - before).toBe(0)
    const beyond = limitOf(await lookUp(first, client))
    expect(beyond).toMatchObject({ limit: lowered.burst, remaining: lowered.burst - 1 })
    expect((await calls()) - before).toBe(1)
    expect(countsOf(await loggedOf(first, client, allowance.burst + 1))).toEqual({
      allowance: allowance.burst,
      ok: 1,
    })
    expect(JSON.stringify(pod.requests)).not.toContain('curtail-beyond')
  })

  test('a redirect beyond it with a body that is too large has none of its headers', async () => {
    const client = newClient()
    await useAllowance(first, client)
    const body = `8000\r\n${'x'.repeat(0x8000)}\r\n0\r\n\r\n`
    const request = { path: '/known', client, headers: { 'Transfer-Encoding': 'chunked' }, body }
    const response = await first.send(request)
    expect([response.status, headersOf(response, headerNames[1])]).toEqual([413, []])
  })
  test('the header of a client has no effect, and pods never receive it', async () => {
    const before = await calls()
    const headers = { 'X-Curtail-Beyond': '1' }
    expect((await first.send({ path: '/known', client: newClient(), headers })).status).toBe(302)
    expect((await calls()) - before).toBe(0)
    expect(JSON.stringify(pod.requests)).not.toContain('beyond')
  })

  test('the addresses of an IPv6 /64 have one allowance', async () => {
    const before = await calls()
    const addresses = Array.from({ length: allowance.burst }, (_, n) => `2001:db8:7:1::${n + 1}`)
    for (const address of addresses) await lookUp(first, address)
    expect((await calls()) - before).toBe(0)
    await lookUp(first, '2001:db8:7:1:ffff::1')
    expect((await calls()) - before).toBe(1)
    await lookUp(first, '2001:db8:7:2::1')
    expect((await calls()) - before).toBe(1)
  })

  test('a creating request uses no allowance, and is counted as without it', async () => {
    const client = newClient()
    const before = await calls()
    const create = () => first.send({ method: 'POST', path: '/v1/urls', body: '{}', client })
    for (let n = 0; n < 3; n++) expect(limitOf(await create()).limit).toBe(20)
    expect((await calls()) - before).toBe(3)
    await useAllowance(first, client)
  })
})

/** The status of a lookup over HTTPS. */
async function lookUpByTls(edge: Edge, ca: string, client: string): Promise<number> {
  const headers = { 'X-Forwarded-For': client }
  const [host, servername] = ['127.0.0.1', 'edge.test']
  const request = get({ host, port: edge.httpsPort, servername, ca, path: '/known', headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response.statusCode ?? 0
}

test('HTTP and HTTPS each have an allowance, so that each listener counts', async () => {
  const authority = createAuthority('edge-test')
  const { cert, key } = authority.issue(['edge.test'])
  const folder = await mkdtemp(join(tmpdir(), 'curtail-allowance-'))
  await writeFile(join(folder, 'tls.crt'), cert)
  await writeFile(join(folder, 'tls.key'), key)
  const both = { ...settings, tls: true, certificateFolder: folder }
  const edge = await startEdge({
    podPort: pod.port,
    limiterPorts: [limiter.grpcPort],
    limiterTimeout: '10s',
    settings: both,
  })
  try {
    await waitUntilCalled(edge)
    const client = newClient()
    await useAllowance(edge, client)
    const before = await calls()
    for (let n = 0; n < allowance.burst; n++) {
      expect(await lookUpByTls(edge, authority.cert, client)).toBe(302)
    }
    expect((await calls()) - before).toBe(0)
    expect(await lookUpByTls(edge, authority.cert, client)).toBe(302)
    expect((await calls()) - before).toBe(1)
  } finally {
    await edge.stop()
    await rm(folder, { recursive: true })
  }
})

describe('beyond the allowance', () => {
  test('a request counts at the same counter as without the allowance', async () => {
    const client = newClient()
    await useAllowance(first, client)
    const startMs = performance.now()
    const remaining: number[] = []
    for (const edge of [plain, first, plain, first]) {
      remaining.push(limitOf(await lookUp(edge, client)).remaining)
    }
    const refilled = ((performance.now() - startMs) / 1000) * lowered.perSecond
    expect(remaining[3]).toBeGreaterThanOrEqual(lowered.burst - 4)
    expect(remaining[3]).toBeLessThanOrEqual(lowered.burst - 4 + refilled)
  })

  test('a 404 counts as an unknown code, within the allowance too', async () => {
    pod.statuses.set('/none', 404)
    const client = newClient()
    const [callsBefore, unknownsBefore] = [await calls(), await unknowns()]
    for (let n = 0; n < 3; n++) limitOf(await lookUp(first, client, '/none'))
    await waitFor('the hits', async () => (await unknowns()) - unknownsBefore === 3)
    expect((await calls()) - callsBefore).toBe(3)
  })

  test('a client with too many misses is denied', async () => {
    pod.statuses.set('/none', 404)
    const walker = '2001:db8:9:9::1'
    const before = await unknowns()
    // After the minute, hits of the previous window weigh less and less.
    await waitFor('a minute with time left', () => Date.now() % 60_000 < 50_000)
    for (let n = 0; n < UNKNOWN_MAX; n++) await lookUp(first, walker, '/none')
    await waitFor('the hits', async () => (await unknowns()) - before === UNKNOWN_MAX)
    const denied = await lookUp(first, walker)
    expect(jsonOf(denied)['rule']).toBe('unknown-codes-per-ipv6-client')
    expect(limitOf(denied)).toMatchObject({ limit: UNKNOWN_MAX, remaining: 0 })
    await useAllowance(second, walker) // the stated bound: the allowance of each Envoy
    expect((await lookUp(second, walker)).status).toBe(429)
  })
})

/** Sends requests of a new client to these edges until `denials` are denied, then counts. */
async function flood(edges: readonly Edge[], denials: number) {
  const client = newClient()
  const responses: RawResponse[] = []
  const startMs = performance.now()
  let denied = 0
  for (let round = 0; denied < denials && round < 400; round++) {
    const burst = edges.map((edge) => lookUp(edge, client))
    responses.push(...(await Promise.all(burst)))
    denied = responses.filter(({ status }) => status === 429).length
  }
  const seconds = (performance.now() - startMs) / 1000
  const admitted = responses.filter(({ status }) => status === 302)
  return { client, responses, admitted, denied, seconds }
}

describe('all Envoys together', () => {
  test('admit the rule, and not more', async () => {
    const { responses, admitted, seconds } = await flood([first, second], 30)
    for (const response of responses) limitOf(response)
    expect(admitted.length).toBeGreaterThanOrEqual(rule.burst)
    expect(admitted.length).toBeLessThanOrEqual(rule.burst + Math.ceil(rule.perSecond * seconds))
  })

  test('admit the local limit each while the limiter is killed', async () => {
    limiter.child.kill('SIGKILL')
    await limiter.exited
    const { client, responses, admitted, denied, seconds } = await flood([first], 10)
    expect(admitted.length).toBeGreaterThanOrEqual(rule.burst)
    expect(admitted.length).toBeLessThanOrEqual(rule.burst + Math.ceil(rule.perSecond * seconds))
    const counts = countsOf(await loggedOf(first, client, responses.length))
    expect(Object.keys(counts).sort()).toEqual(['allowance', 'null'])
    expect(counts['allowance']).toBeLessThanOrEqual(allowance.burst + Math.ceil(seconds / 5))
    for (const response of admitted.slice(0, allowance.burst)) limitOf(response)
    const silent = admitted.filter((one) => headersOf(one, 'X-RateLimit-Limit').length === 0)
    expect(silent.length).toBe(admitted.length - (counts['allowance'] ?? 0))
    const local = responses.filter(({ status }) => status === 429)
    expect(local.map((one) => jsonOf(one)['rule'])).toEqual(Array(denied).fill('local'))
    const limits = local.map((one) => limitOf(one).limit)
    expect(limits).toEqual(Array(denied).fill(settings.redirectBurst))
  })
})
