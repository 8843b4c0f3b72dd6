// GET and HEAD /{code} of the real standalone process: the exact redirect, paths that are not
// codes, and the same 404 for unknown, expired, disabled and deleted links. Every response is
// validated against /openapi.json.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, codeOf, createLinkRequest, openClient } from '../../kit/http/client.ts'
import {
  type RawResponse,
  headerOf,
  headersOf,
  jsonOf,
  openConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const target = 'https://example.com/a/../b?q=%7e"<>#frag'

let service: Standalone
let client: Client

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
  expect((await client.create({ long_url: target, custom_alias: 'found' })).status).toBe(201)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

/** The headers without those of the connection and the request id. */
function ownHeaders(response: RawResponse): (readonly [string, string])[] {
  const others = ['connection', 'keep-alive', 'date', 'x-request-id']
  return response.headers.filter(([name]) => !others.includes(name.toLowerCase()))
}

/** Changes the expiry of a link, directly in the database. */
function setExpiry({ dataDir }: Standalone, code: string, expiresAtMs: number): void {
  const db = new DatabaseSync(join(dataDir, 'curtail.db'), { timeout: 5000 })
  db.prepare('UPDATE links SET expires_at = ? WHERE short_code = ?').run(expiresAtMs, code)
  db.close()
}

const redirectHeaders = [
  ['Location', target],
  ['Cache-Control', 'private, no-store'],
  ['Content-Type', 'text/plain; charset=utf-8'],
  ['Content-Length', String(`Redirecting to ${target}\n`.length)],
  ['X-Robots-Tag', 'noindex'],
  ['Referrer-Policy', 'no-referrer-when-downgrade'],
]

describe('a redirect', () => {
  test('is 302 with the target byte for byte and only these headers', async () => {
    const response = await client.resolve('found')
    expect(response.status).toBe(302)
    expect(ownHeaders(response)).toEqual(redirectHeaders)
    expect(response.body.toString()).toBe(`Redirecting to ${target}\n`)
  })

  test('has no body for HEAD, and the connection stays open', async () => {
    const connection = await openConnection(service.port)
    const response = await connection.exchange({ method: 'HEAD', path: '/found' })
    expect(response.status).toBe(302)
    expect(ownHeaders(response)).toEqual(redirectHeaders)
    expect((await connection.exchange({ path: '/found' })).status).toBe(302)
    expect(connection.rest).toHaveLength(0)
    connection.close()
  })

  test.each([
    ...['/found?', '/found?q=1&r', '/found?https://elsewhere.example/', '/%66ound', '/%66%6fund'],
    ...['http://127.0.0.1/found', 'http://other.example/found?q', 'HTTP://x:1/%66ound'],
  ])('is the same for %s', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const response = await client.send({ method, path })
      expect([response.status, ...headersOf(response, 'Location')]).toEqual([302, target])
    }
  })

  test('is the same with Accept: text/html and irrelevant headers', async () => {
    const headers = {
      Accept: 'text/html',
      Expect: 'something',
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'If-None-Match': '*',
      Range: 'bytes=0-1',
    }
    const response = await client.send({ path: '/found', headers })
    expect(response.status).toBe(302)
    expect(ownHeaders(response)).toEqual(redirectHeaders)
  })

  test('is returned in order for pipelined requests', async () => {
    const codes = await Promise.all(
      Array.from({ length: 8 }, async (_, i) =>
        codeOf(await client.create({ long_url: `https://example.com/${i}` })),
      ),
    )
    const paths = [...codes, 'nowhere', 'found', 'v1/urls', '', codes[0] ?? '']
    const connection = await openConnection(service.port)
    connection.send(Buffer.concat(paths.map((path) => requestBytes({ path: `/${path}` }))))
    const locations: unknown[] = []
    while (locations.length < paths.length) {
      const response = await connection.nextResponse()
      locations.push(headerOf(response, 'Location') ?? response.status)
    }
    connection.close()
    const inOrder = codes.map((_, i) => `https://example.com/${i}`)
    expect(locations).toEqual([...inOrder, 404, target, 405, 200, 'https://example.com/0'])
  })

  test('is returned to HTTP/1.0 without Host, and the connection closes', async () => {
    const connection = await openConnection(service.port)
    connection.send('GET /found HTTP/1.0\r\n\r\n')
    const response = await connection.nextResponse()
    expect([response.status, headerOf(response, 'Location')]).toEqual([302, target])
    expect(await connection.closed).toBe('end')
    connection.close()
  })
})

const notFoundPaths: readonly string[] = [
  ...['/found/', '/found/deeper', '/found//', '//found', '///', '/./found', '/../found', '/..'],
  ...['/FOUND', '/foun', '/found.', '/found%20', '/found%', '/%zz', '/%', '/%2', '/%e4%f6', '/%00'],
  ...['/found%2F', '/%2Ffound', '/a%2Fb', '/12345678901', '/%66ound%66ound%66ound', '/a.b', '/~'],
  ...['/found;x', '/found&x', '/*', '/{code}', `/${'x'.repeat(8000)}`],
  ...['/v1', '/v1/', '/v1/urls/', '/V1/urls', '/v1/URLS', '/v1/urls/found', '/v1//urls', '/v1/%zz'],
  ...['/docs/', '/DOCS', '/Docs', '/index.html', '/openapi.JSON', '/problems', '/problems/'],
  ...['/problems/none', '/problems/%zz', '/problems/__proto__', '/problems/toString', '/assets'],
  ...['/assets/', '/assets/none', '/assets/../main.ts', '/assets/%2e%2e%2fmain.ts', '/assets/%zz'],
  ...[
    '/admin',
    '/admin/links/found',
    '/metrics',
    '/livez',
    '/readyz',
    '/constructor',
    '/__proto__',
  ],
  ...[
    'http://127.0.0.1/none',
    'http://x/a/../found',
    'http://x//found',
    '//x[#',
    '//[',
    '//x@[y#',
    '//%zz@x#',
    '/found#x',
  ],
]

describe('a 404', () => {
  test.each(notFoundPaths)('is returned for %s', async (path) => {
    const response = await client.send({ path })
    expect(response.status).toBe(404)
    expect(headerOf(response, 'Cache-Control')).toBe('no-store')
    expect(jsonOf(response)['type']).toBe(`${service.linkBase}/problems/not-found`)
    const withoutBody = await client.send({ method: 'HEAD', path })
    expect([withoutBody.status, withoutBody.body.length]).toEqual([404, 0])
    expect(ownHeaders(withoutBody).length).toBe(ownHeaders(response).length)
  })

  test.each([
    [undefined, 'application/problem+json'],
    ['*/*', 'application/problem+json'],
    ['', 'application/problem+json'],
    ['application/json', 'application/problem+json'],
    ['text/plain', 'application/problem+json'],
    ['text/html', 'text/html; charset=utf-8'],
    ['TEXT/HTML;q=0.9, */*;q=0.8', 'text/html; charset=utf-8'],
    ['text/html;q=0.5, application/json', 'application/problem+json'],
    ['text/html;q=0', 'application/problem+json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html; charset=utf-8'],
    ['nonsense;;q=x,,', 'application/problem+json'],
  ])('for Accept: %s is %s', async (accept, type) => {
    for (const path of ['/nowhere', '/found/', '/%zz', '/problems/none']) {
      const headers = accept === undefined ? {} : { Accept: accept }
      const response = await client.send({ path, headers })
      expect(headerOf(response, 'Content-Type')).toBe(type)
      expect(headerOf(response, 'Cache-Control')).toBe('no-store')
    }
  })

  test('is the same for unknown, expired, disabled and deleted links', async () => {
    const admin = async (method: string, path: string) => {
      const response = await fetch(`${service.adminUrl}/admin/links/${path}`, { method })
      expect(response.ok).toBe(true)
    }
    for (const alias of ['expired', 'disabled', 'deleted']) {
      const body = { long_url: target, custom_alias: alias, ttl_days: 1 }
      expect((await client.create(body)).status).toBe(201)
    }
    setExpiry(service, 'expired', Date.now())
    await admin('POST', 'disabled/disable')
    await admin('DELETE', 'deleted')
    for (const headers of [{}, { Accept: 'text/html' }]) {
      const unknown = await client.send({ path: '/unknown', headers })
      for (const code of ['expired', 'disabled', 'deleted']) {
        const response = await client.send({ path: `/${code}`, headers })
        expect([response.status, ownHeaders(response)]).toEqual([404, ownHeaders(unknown)])
        expect(withoutId(response)).toBe(withoutId(unknown))
      }
    }
  })
})

const withoutId = (response: RawResponse) =>
  response.body.toString().replaceAll(headerOf(response, 'X-Request-Id') ?? '', 'id')

describe('the expiry of a link', () => {
  test('applies to the millisecond, also to a link in memory', async () => {
    let statuses = new Set<number>()
    // If the machine stalls, a link may expire before the first request: then another lives longer.
    for (let lifeMs = 3000; !statuses.has(302) && lifeMs < 10_000; lifeMs *= 3) {
      const alias = `ends${lifeMs}`
      await client.create({ long_url: target, custom_alias: alias, ttl_days: 1 })
      const expiresAtMs = Date.now() + lifeMs
      setExpiry(service, alias, expiresAtMs)
      statuses = new Set()
      for (let nowMs = Date.now(); !statuses.has(404); nowMs = Date.now()) {
        const { status } = await client.resolve(alias)
        statuses.add(status)
        // The service evaluated it between the two readings of the same clock.
        if (status === 302) expect(nowMs).toBeLessThan(expiresAtMs)
        else expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs)
      }
    }
    expect([...statuses]).toEqual([302, 404])
  })

  test('keeps the alias reserved', async () => {
    await client.create({ long_url: target, custom_alias: 'lapsed', ttl_days: 1 })
    setExpiry(service, 'lapsed', Date.now() - 1)
    expect((await client.resolve('lapsed')).status).toBe(404)
    const second = await client.send(
      createLinkRequest({ long_url: target, custom_alias: 'lapsed' }),
    )
    expect(second.status).toBe(409)
  })
})

test(
  'REDIRECT_STATUS=301 returns 301, cacheable for 300 s or until the link expires',
  async () => {
    const permanent = await startStandalone({ env: { REDIRECT_STATUS: '301' } })
    const permanentClient = await openClient(permanent.port)
    try {
      await permanentClient.create({ long_url: target, custom_alias: 'permanent' })
      await permanentClient.create({ long_url: target, custom_alias: 'ending', ttl_days: 1 })
      const permanentResponse = await permanentClient.resolve('permanent')
      expect(permanentResponse.status).toBe(301)
      expect(headerOf(permanentResponse, 'Location')).toBe(target)
      expect(headerOf(permanentResponse, 'Cache-Control')).toBe('private, max-age=300')
      setExpiry(permanent, 'ending', Date.now() + 100_000)
      const ending = headerOf(await permanentClient.resolve('ending'), 'Cache-Control') ?? ''
      const seconds = Number(/^private, max-age=(\d+)$/.exec(ending)?.[1])
      expect(seconds).toBeGreaterThan(80)
      expect(seconds).toBeLessThanOrEqual(100)
      expect(headerOf(await permanentClient.resolve('none'), 'Cache-Control')).toBe('no-store')
    } finally {
      permanentClient.close()
      await permanent.stop()
    }
  },
  START_MS_MAX,
)
