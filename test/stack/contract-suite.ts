// The public contract through the edge: every response with its headers, each exactly once.
import { describe, expect, test } from '@jest/globals'
import { codeOf } from '../kit/http/client.ts'
import { type RawResponse, headerOf, headersOf, jsonOf } from '../kit/http/raw-http.ts'
import { type EdgeClient, newAddress, openEdgeClient } from './edge-client.ts'
import type { Stack } from './start-stack.ts'

const target = 'https://example.com/a?b=c#d'
const limitHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
const TEST_MS_MAX = 60_000
const problemType = 'application/problem+json'

/** Every header came once, the request's id among them; a problem names the same id. */
function expectWhole(answer: RawResponse): void {
  const names = answer.headers.map(([name]) => name.toLowerCase())
  expect(names).toEqual([...new Set(names)])
  const id = headerOf(answer, 'X-Request-Id')
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  if (headerOf(answer, 'Content-Type') !== problemType || answer.body.length === 0) return
  expect(jsonOf(answer)).toMatchObject({ status: answer.status, request_id: id })
}

/** The same for an answer that a limit was asked about, and its bucket's size. */
function expectLimited(answer: RawResponse, limit: string): void {
  expectWhole(answer)
  const [said, remaining, reset] = limitHeaders.map((name) => headersOf(answer, name))
  expect(said).toEqual([limit])
  expect(remaining).toEqual([expect.stringMatching(/^\d+$/)])
  expect(reset).toEqual([expect.stringMatching(/^\d{10}$/)])
}

/**
 * Does `work` as new clients until the limiter has had a word in each answer: on a busy machine one
 * of its answers may come after Envoy's 20 ms, and then the edge decides alone.
 */
async function asNewClient(stack: Stack, work: (client: EdgeClient) => Promise<RawResponse[]>) {
  for (let tries = 0; ; tries++) {
    const client = await openEdgeClient(stack.port, newAddress())
    const answers = await work(client)
    client.close()
    const isWhole = answers.every((answer) => headersOf(answer, 'X-RateLimit-Limit').length > 0)
    if (isWhole || tries === 20) return answers
  }
}

/** Tests of it. */
export function describeContract(stackNow: () => Stack): void {
  describe('the public contract through the edge', () => {
    testLinks(stackNow)
    testRefusals(stackNow)
    testRepeats(stackNow)
    testPages(stackNow)
  })
}

/** Creates that succeed, and the redirects of their codes. */
function testLinks(stackNow: () => Stack): void {
  test(
    '201: two members, Location, and the limit headers',
    async () => {
      const [answer] = await asNewClient(stackNow(), async (client) => [
        await client.create({ long_url: target, ttl_days: 2 }),
      ])
      if (answer === undefined) throw new Error('there is no answer')
      expectLimited(answer, '20')
      const body = jsonOf(answer)
      expect(Object.keys(body)).toEqual(['short_url', 'expires_at'])
      expect(body['short_url']).toBe(`${stackNow().url}/${codeOf(answer)}`)
      expect(headerOf(answer, 'Location')).toBe(body['short_url'])
      expect(headerOf(answer, 'Cache-Control')).toBe('no-store')
    },
    TEST_MS_MAX,
  )

  test(
    '302, for GET and for HEAD, immediately and byte for byte',
    async () => {
      const answers = await asNewClient(stackNow(), async (client) => {
        const path = `/${codeOf(await client.create({ long_url: target }))}`
        return [
          await client.ask({ path }),
          await client.ask({ path: `${path}?x=y` }),
          await client.ask({ method: 'HEAD', path }),
        ]
      })
      for (const answer of answers) {
        expect([answer.status, headerOf(answer, 'Location')]).toEqual([302, target])
        expectLimited(answer, '500')
        expect(headerOf(answer, 'Cache-Control')).toBe('private, no-store')
        expect(headerOf(answer, 'X-Robots-Tag')).toBe('noindex')
        expect(headerOf(answer, 'Referrer-Policy')).toBe('no-referrer-when-downgrade')
      }
      expect(answers[2]?.body).toHaveLength(0)
    },
    TEST_MS_MAX,
  )

  test(
    '404, as a page and as a problem, with the limit',
    async () => {
      const [page, problem] = await asNewClient(stackNow(), async (client) => [
        await client.ask({ path: '/none', headers: { Accept: 'text/html' } }),
        await client.ask({ path: '/none' }),
      ])
      for (const answer of [page, problem]) {
        expect(answer?.status).toBe(404)
        if (answer !== undefined) expectLimited(answer, '500')
      }
      const types = [page, problem].map((answer) => answer && headerOf(answer, 'Content-Type'))
      expect(types).toEqual(['text/html; charset=utf-8', problemType])
    },
    TEST_MS_MAX,
  )
}

/** Paths without a link, and creates that are rejected. */
function testRefusals(stackNow: () => Stack): void {
  test.each(['/abcdefghijk', '/none/', '/v1/urls/', '/a/b', '/%zz', '/no.code'])(
    '%s is not found',
    async (path) => {
      const client = await openEdgeClient(stackNow().port)
      const answer = await client.ask({ path })
      expect([path, answer.status]).toEqual([path, path === '/%zz' ? expect.anything() : 404])
      expect([400, 404]).toContain(answer.status)
      expectWhole(answer)
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
      if (taken === undefined || invalid === undefined) throw new Error('there is no answer')
      for (const answer of [taken, invalid]) expectLimited(answer, '20')
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
      const text = { 'Content-Type': 'text/plain' }
      const large = JSON.stringify({ long_url: `https://x/${'a'.repeat(17_000)}` })
      const refusals = [
        [400, 'malformed-json', { ...post, headers: json, body: '{' }],
        [413, 'body-too-large', { ...post, headers: json, body: large }],
        [415, 'unsupported-media-type', { ...post, headers: text, body: '{}' }],
        [405, 'method-not-allowed', { path: '/v1/urls' }],
        [405, 'method-not-allowed', { method: 'DELETE', path: '/none' }],
      ] as const
      for (const [status, name, ask] of refusals) {
        const answer = await client.ask(ask)
        expect([answer.status, jsonOf(answer)['type']]).toEqual([
          status,
          `${stackNow().url}/problems/${name}`,
        ])
        expectWhole(answer)
        expect(headersOf(answer, 'Allow')).toHaveLength(status === 405 ? 1 : 0)
      }
      client.close()
    },
    TEST_MS_MAX,
  )
}

/** Creates that are retried. */
function testRepeats(stackNow: () => Stack): void {
  test(
    'a retry with the same Idempotency-Key returns the same link, also from another pod',
    async () => {
      const client = await openEdgeClient(stackNow().port)
      const key = { 'Idempotency-Key': `key-${client.address}` }
      const first = await client.create({ long_url: target }, key)
      for (let i = 0; i < 4; i++) {
        const again = await client.create({ long_url: target }, key)
        expect([again.status, jsonOf(again)]).toEqual([201, jsonOf(first)])
        expect(headerOf(again, 'Idempotency-Replayed')).toBe('true')
        expectWhole(again)
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
        const answer = await client.ask({ path, headers: { Accept: 'text/html' } })
        expect([path, answer.status]).toEqual([path, 200])
        expect(headerOf(answer, 'Content-Type')).toContain(type)
        expectWhole(answer)
      }
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const body = `long_url=${encodeURIComponent(target)}&custom_alias=&ttl_days=`
      const made = await client.ask({ method: 'POST', path: '/', headers, body })
      expect(made.status).toBe(201)
      expect(made.body.toString()).toContain(`${stackNow().url}/`)
      expectWhole(made)
      client.close()
    },
    TEST_MS_MAX,
  )
}
