// POST /v1/urls of the real standalone process: requests that it accepts, and the exact Location of
// the redirects. Every response is validated against /openapi.json.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, codeOf, createLinkRequest, openClient } from '../../kit/http/client.ts'
import { headerOf, jsonOf, openConnection, requestBytes } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const TARGET_LENGTH_MAX = 2048
const BODY_BYTES_MAX = 16 * 1024
const DAY_MS = 86_400_000

let service: Standalone
let client: Client

beforeAll(async () => {
  const env = { BASE_URL: 'https://cur.tl', OWN_HOSTS: 'short.example,[2001:db8::1]' }
  service = await startStandalone({ env })
  client = await openClient(service.port)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

/** A URL of exactly `length` characters. */
const urlOf = (length: number) => 'https://e.com/'.padEnd(length, 'x')

describe('a create', () => {
  test('returns 201 with exactly two members, Location and no-store', async () => {
    const response = await client.create({ long_url: 'https://example.com/' })
    expect(response.status).toBe(201)
    const body = jsonOf(response)
    expect(Object.keys(body)).toEqual(['short_url', 'expires_at'])
    expect(body['short_url']).toMatch(/^https:\/\/cur\.tl\/[0-9A-Za-z]{7}$/)
    expect(body['expires_at']).toBeNull()
    expect(headerOf(response, 'Location')).toBe(body['short_url'])
    expect(headerOf(response, 'Cache-Control')).toBe('no-store')
    expect(headerOf(response, 'Content-Type')).toBe('application/json; charset=utf-8')
    expect(headerOf(response, 'Idempotency-Replayed')).toBeUndefined()
  })

  test('sets expires_at to ttl_days times 86,400 seconds after created_at', async () => {
    for (const days of [1, 30, 3650]) {
      const beforeMs = Date.now()
      const response = await client.create({ long_url: 'https://example.com/', ttl_days: days })
      const afterMs = Date.now()
      const expiresAt = String(jsonOf(response)['expires_at'])
      expect(expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const createdMs = Date.parse(expiresAt) - days * DAY_MS
      expect(createdMs).toBeGreaterThanOrEqual(beforeMs)
      expect(createdMs).toBeLessThanOrEqual(afterMs)
    }
  })

  test('uses the alias, case-sensitively', async () => {
    const lower = await client.create({ long_url: 'https://a.example/', custom_alias: 'case-_09' })
    const upper = await client.create({ long_url: 'https://b.example/', custom_alias: 'CASE-_09' })
    expect(jsonOf(lower)['short_url']).toBe('https://cur.tl/case-_09')
    expect(codeOf(upper)).toBe('CASE-_09')
    expect(headerOf(await client.resolve('case-_09'), 'Location')).toBe('https://a.example/')
    expect(headerOf(await client.resolve('CASE-_09'), 'Location')).toBe('https://b.example/')
  })

  test('of a taken alias returns 409 and keeps the first target', async () => {
    const first = { long_url: 'https://first.example/', custom_alias: 'once' }
    expect((await client.create(first)).status).toBe(201)
    for (const longUrl of [first.long_url, 'https://second.example/']) {
      const response = await client.create({ ...first, long_url: longUrl })
      expect(response.status).toBe(409)
      expect(jsonOf(response)['type']).toBe('https://cur.tl/problems/alias-taken')
    }
    expect(headerOf(await client.resolve('once'), 'Location')).toBe(first.long_url)
  })

  test('takes effect immediately although a lookup of its code just missed', async () => {
    for (const alias of ['miss1', 'miss2', 'miss3']) {
      expect((await client.resolve(alias)).status).toBe(404)
      expect((await client.resolve(alias)).status).toBe(404)
      const body = { long_url: `https://example.com/${alias}`, custom_alias: alias }
      expect((await client.create(body)).status).toBe(201)
      expect(headerOf(await client.resolve(alias), 'Location')).toBe(body.long_url)
    }
  })

  test('takes effect immediately while lookups of its code run', async () => {
    let isDone = false
    const statuses: number[] = []
    const lookUp = async () => {
      while (!isDone) statuses.push((await client.resolve('raced')).status)
    }
    const lookups = Array.from({ length: 8 }, lookUp)
    await client.resolve('raced')
    const body = { long_url: 'https://example.com/raced', custom_alias: 'raced' }
    expect((await client.create(body)).status).toBe(201)
    expect((await client.resolve('raced')).status).toBe(302)
    isDone = true
    await Promise.all(lookups)
    expect(new Set(statuses)).toEqual(new Set([404, 302]))
  })
})

const stored: Record<string, [sent: string, stored?: string]> = {
  'is stored as sent': ['https://example.com/a/../b?q=%7e%7E&x=1+1#frag'],
  'keeps the case of scheme and host': ['HTTPS://EXAMPLE.com'],
  'keeps a default port and a missing slash': ['http://example.com:80'],
  'keeps quotes, braces and a lone percent': ['https://e.com/"<>`{}|\\^%zz%'],
  'keeps a backslash for a slash': ['https://e.com\\path'],
  'keeps a fragment and an empty query': ['https://e.com/?#'],
  'keeps an IP address as written': ['http://0x7f.1/'],
  'keeps an IPv6 address': ['http://[2001:db8::2]:8080/x'],
  'may have the maximum length': [urlOf(TARGET_LENGTH_MAX)],
  'is percent-encoded if it is not ASCII': [
    'https://e.com/ü?ä=ö#ß',
    'https://e.com/%C3%BC?%C3%A4=%C3%B6#%C3%9F',
  ],
  'converts the host to punycode': ['https://münchen.example', 'https://xn--mnchen-3ya.example/'],
  'percent-encodes a space inside': ['https://e.com/a b', 'https://e.com/a%20b'],
  'drops tabs and line breaks inside': ['https://e.com/a\tb\r\nc', 'https://e.com/abc'],
  'percent-encodes a NUL inside': ['https://e.com/\u0000x', 'https://e.com/%00x'],
  'percent-encodes a DEL inside': ['https://e.com/\u007fx', 'https://e.com/%7Fx'],
  'replaces a lone surrogate': ['https://e.com/\ud800x', 'https://e.com/%EF%BF%BDx'],
  'percent-encodes an emoji': ['https://e.com/\u{1f600}', 'https://e.com/%F0%9F%98%80'],
}

describe('long_url', () => {
  test.each(Object.entries(stored))('%s', async (_, [sent, expected = sent]) => {
    const code = codeOf(await client.create({ long_url: sent }))
    const response = await client.resolve(code)
    expect(response.status).toBe(302)
    expect(headerOf(response, 'Location')).toBe(expected)
  })
})

const accepted: Record<string, string | Buffer> = {
  'null members': '{"long_url":"https://e.com/","custom_alias":null,"ttl_days":null}',
  'ttl_days 1.0': '{"long_url":"https://e.com/","ttl_days":1.0}',
  'ttl_days 1e0': '{"long_url":"https://e.com/","ttl_days":1e0}',
  'white space around the object': ' \r\n\t{"long_url" : "https://e.com/"}\n ',
  'a byte order mark': '\ufeff{"long_url":"https://e.com/"}',
  'the last of duplicate members': '{"long_url":"nonsense","long_url":"https://e.com/"}',
  'exactly 16 KiB': '{"long_url":"https://e.com/"}'.padEnd(BODY_BYTES_MAX),
  'escapes for characters': '{"long\\u005furl":"https:\\/\\/e.com\\u002f"}',
}
const expectCreated = async (body: string | Buffer, headers = {}) => {
  const response = await client.create(body, headers)
  const code = codeOf(response)
  expect(headerOf(await client.resolve(code), 'Location')).toBe('https://e.com/')
}

describe('a create', () => {
  test.each(Object.entries(accepted))('accepts %s', async (_, body) => {
    await expectCreated(body)
  })

  test.each([
    'application/json;charset=utf-8',
    'application/json; charset=latin1',
    'APPLICATION/JSON',
    'application/json ; charset="utf-8"; x=y',
  ])('accepts the Content-Type %s', async (type) => {
    await expectCreated('{"long_url":"https://e.com/"}', { 'Content-Type': type })
  })

  test('accepts Content-Encoding: identity', async () => {
    await expectCreated('{"long_url":"https://e.com/"}', { 'Content-Encoding': 'identity' })
  })

  test('accepts a body in chunks, after 100 Continue', async () => {
    const connection = await openConnection(service.port)
    const headers = { 'Transfer-Encoding': 'chunked', Expect: '100-continue' }
    connection.send(requestBytes({ ...createLinkRequest('', headers), body: Buffer.alloc(0) }))
    expect((await connection.nextResponse()).status).toBe(100)
    connection.send('9;ext=1\r\n{"long_ur\r\n')
    connection.send('14\r\nl":"https://e.com/"}\r\n0\r\nTrailer: x\r\n\r\n')
    expect((await connection.nextResponse()).status).toBe(201)
    connection.close()
  })
})
