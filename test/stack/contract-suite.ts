// The public contract through the edge: every response with its headers, each exactly once.
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { codeOf } from '../kit/http/client.ts'
import { type RawResponse, headerOf, headersOf, jsonOf } from '../kit/http/raw-http.ts'
import { type EdgeClient, newAddress, openEdgeClient } from './edge-client.ts'
import { logFileOf } from './log-files.ts'
import type { Stack } from './start-stack.ts'

const target = 'https://example.com/a?b=c#d'
const limitHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
const TEST_MS_MAX = 180_000
const problemType = 'application/problem+json'

/** Expects each header once, with a request id; a problem must contain the same id. */
function expectUniqueHeaders(response: RawResponse): void {
  const names = response.headers.map(([name]) => name.toLowerCase())
  expect(names).toEqual([...new Set(names)])
  const id = headerOf(response, 'X-Request-Id')
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  if (headerOf(response, 'Content-Type') !== problemType || response.body.length === 0) return
  expect(jsonOf(response)).toMatchObject({ status: response.status, request_id: id })
}

/** Expects the same of a response to a limited request, and the limit of its bucket. */
function expectLimited(response: RawResponse, limit: string): void {
  expectUniqueHeaders(response)
  const [burst, remaining, reset] = limitHeaders.map((name) => headersOf(response, name))
  expect(burst).toEqual([limit])
  expect(remaining).toEqual([expect.stringMatching(/^\d+$/)])
  expect(reset).toEqual([expect.stringMatching(/^\d{10}$/)])
}

/**
 * Runs `work` with a new client until the limiter decided every response: on a busy machine it may
 * exceed Envoy's 20 ms, and then the edge decides without it.
 */
async function asNewClient(stack: Stack, work: (client: EdgeClient) => Promise<RawResponse[]>) {
  for (let tries = 0; ; tries++) {
    const client = await openEdgeClient(stack.port, newAddress())
    const responses = await work(client)
    client.close()
    const areLimited = responses.every(
      (response) => headersOf(response, 'X-RateLimit-Limit').length > 0,
    )
    if (areLimited || tries === 20) return responses
  }
}

/** The `contract` suite: the public contract through the edge. */
export function testContract(stackNow: () => Stack): void {
  testLogs(stackNow)
  testLinks(stackNow)
  testRejections(stackNow)
  testRetries(stackNow)
  testPages(stackNow)
}

function testLogs(stackNow: () => Stack): void {
  test('no process of ours logs a warning before it is ready', async () => {
    const { folder, components } = stackNow()
    const ours = components.filter(({ name }) => /^(create|redirect|ratelimit|drain)-/.test(name))
    expect(ours.length).toBeGreaterThanOrEqual(7)
    for (const { name } of ours) {
      const log = await readFile(logFileOf(folder, name), 'utf8')
      const [start = '', ready] = log.split('"msg":"ready"')
      expect([name, ready === undefined]).toEqual([name, false])
      expect([name, start]).toEqual([name, expect.not.stringMatching(/"level":"(warn|error)"/)])
    }
  })
}

/** Creates that succeed, and the redirects of their codes. */
function testLinks(stackNow: () => Stack): void {
  test(
    '201: two members, Location, and the limit headers',
    async () => {
      const [response] = await asNewClient(stackNow(), async (client) => [
        await client.create({ long_url: target, ttl_days: 2 }),
      ])
      if (response === undefined) throw new Error('no response')
      expectLimited(response, '20')
      const body = jsonOf(response)
      expect(Object.keys(body)).toEqual(['short_url', 'expires_at'])
      expect(body['short_url']).toBe(`${stackNow().url}/${codeOf(response)}`)
      expect(headerOf(response, 'Location')).toBe(body['short_url'])
      expect(headerOf(response, 'Cache-Control')).toBe('no-store')
    },
    TEST_MS_MAX,
  )

  test(
    '302, for GET and for HEAD, immediately and byte for byte',
    async () => {
      const responses = await asNewClient(stackNow(), async (client) => {
        const path = `/${codeOf(await client.create({ long_url: target }))}`
        return [
          await client.send({ path }),
          await client.send({ path: `${path}?x=y` }),
          await client.send({ method: 'HEAD', path }),
        ]
      })
      for (const response of responses) {
        expect([response.status, headerOf(response, 'Location')]).toEqual([302, target])
        expectLimited(response, '500')
        expect(headerOf(response, 'Cache-Control')).toBe('private, no-store')
        expect(headerOf(response, 'X-Robots-Tag')).toBe('noindex')
        expect(headerOf(response, 'Referrer-Policy')).toBe('no-referrer-when-downgrade')
      }
      expect(responses[2]?.body).toHaveLength(0)
    },
    TEST_MS_MAX,
  )

  test(
    '404, as a page and as a problem, with the limit',
    async () => {
      const [page, problem] = await asNewClient(stackNow(), async (client) => [
        await client.send({ path: '/none', headers: { Accept: 'text/html' } }),
        await client.send({ path: '/none' }),
      ])
      for (const response of [page, problem]) {
        expect(response?.status).toBe(404)
        if (response !== undefined) expectLimited(response, '500')
      }
      const types = [page, problem].map(
        (response) => response && headerOf(response, 'Content-Type'),
      )
      expect(types).toEqual(['text/html; charset=utf-8', problemType])
    },
    TEST_MS_MAX,
  )
}

/** Paths without a link, and creates that are rejected. */
function testRejections(stackNow: () => Stack): void {
  test.each(['/abcdefghijk', '/none/', '/v1/urls/', '/a/b', '/%zz', '/no.code'])(
    '%s is not found',
    async (path) => {
      const client = await openEdgeClient(stackNow().port)
      const response = await client.send({ path })
      expect([path, response.status]).toEqual([path, path === '/%zz' ? expect.anything() : 404])
      expect([400, 404]).toContain(response.status)
      expectUniqueHeaders(response)
      client.close()
    },
    TEST_MS_MAX,
  )

  test(
    '409 and 422, with the reason in the body',
    async () => {
      const [first, taken, invalid] = await asNewClient(stackNow(), async (client) => {
        const custom_alias = `t${String(performance.now()).replace('.', '').slice(-8)}`
        return [
          await client.create({ long_url: target, custom_alias }),
          await client.create({ long_url: target, custom_alias }),
          await client.create({ long_url: 'ftp://x/', ttl_days: 0 }),
        ]
      })
      expect(first?.status).toBe(201)
      if (taken === undefined || invalid === undefined) throw new Error('no response')
      for (const response of [taken, invalid]) expectLimited(response, '20')
      expect(jsonOf(taken)).toMatchObject({ type: `${stackNow().url}/problems/alias-taken` })
      const { type, errors } = jsonOf(invalid) as { type: string; errors: { pointer: string }[] }
      expect(type).toBe(`${stackNow().url}/problems/invalid-request`)
      expect(errors.map(({ pointer }) => pointer).sort()).toEqual(['/long_url', '/ttl_days'])
    },
    TEST_MS_MAX,
  )

  test(
    'an invalid create request is rejected with the matching problem',
    async () => {
      const client = await openEdgeClient(stackNow().port)
      const post = { method: 'POST', path: '/v1/urls' }
      const json = { 'Content-Type': 'application/json' }
      const plain = { 'Content-Type': 'text/plain' }
      const large = JSON.stringify({ long_url: `https://x/${'a'.repeat(17_000)}` })
      const rejections = [
        [400, 'malformed-json', { ...post, headers: json, body: '{' }],
        [413, 'body-too-large', { ...post, headers: json, body: large }],
        [415, 'unsupported-media-type', { ...post, headers: plain, body: '{}' }],
        [405, 'method-not-allowed', { path: '/v1/urls' }],
        [405, 'method-not-allowed', { method: 'DELETE', path: '/none' }],
      ] as const
      for (const [status, name, request] of rejections) {
        const response = await client.send(request)
        expect([response.status, jsonOf(response)['type']]).toEqual([
          status,
          `${stackNow().url}/problems/${name}`,
        ])
        expectUniqueHeaders(response)
        expect(headersOf(response, 'Allow')).toHaveLength(status === 405 ? 1 : 0)
      }
      client.close()
    },
    TEST_MS_MAX,
  )
}

/** Creates that are retried. */
function testRetries(stackNow: () => Stack): void {
  test(
    'a retry with the same Idempotency-Key returns the same link, also from another pod',
    async () => {
      const client = await openEdgeClient(stackNow().port)
      const key = { 'Idempotency-Key': `key-${client.address}` }
      const first = await client.create({ long_url: target }, key)
      for (let i = 0; i < 4; i++) {
        const retry = await client.create({ long_url: target }, key)
        expect([retry.status, jsonOf(retry)]).toEqual([201, jsonOf(first)])
        expect(headerOf(retry, 'Idempotency-Replayed')).toBe('true')
        expectUniqueHeaders(retry)
      }
      const other = await client.create({ long_url: `${target}/other` }, key)
      expect(jsonOf(other)['type']).toBe(`${stackNow().url}/problems/idempotency-key-reused`)
      client.close()
    },
    TEST_MS_MAX,
  )
}

/** Documents other than links. */
function testPages(stackNow: () => Stack): void {
  test(
    'pages, the form, and the other documents are served',
    async () => {
      const client = await openEdgeClient(stackNow().port)
      const served = {
        '/': 'text/html',
        '/docs': 'text/html',
        '/openapi.json': 'application/json',
        '/problems/rate-limited': 'text/html',
        '/robots.txt': 'text/plain',
        '/favicon.ico': 'image/',
      }
      for (const [path, type] of Object.entries(served)) {
        const response = await client.send({ path, headers: { Accept: 'text/html' } })
        expect([path, response.status]).toEqual([path, 200])
        expect(headerOf(response, 'Content-Type')).toContain(type)
        expectUniqueHeaders(response)
      }
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const body = `long_url=${encodeURIComponent(target)}&custom_alias=&ttl_days=`
      const created = await client.send({ method: 'POST', path: '/', headers, body })
      expect(created.status).toBe(201)
      expect(created.body.toString()).toContain(`${stackNow().url}/`)
      expectUniqueHeaders(created)
      client.close()
    },
    TEST_MS_MAX,
  )
}
