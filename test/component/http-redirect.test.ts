// GET and HEAD /{code} of the real standalone process: the redirect to the byte, what is no code,
// and that links which cannot be followed all look alike. Every answer is held against
// /openapi.json.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, codeOf, createAsk, openClient } from './client.ts'
import {
  type Answer,
  headerOf,
  headersOf,
  jsonOf,
  openConnection,
  requestBytes,
} from './raw-http.ts'
import { type Standalone, startStandalone } from './standalone.ts'

const START_MS_MAX = 30_000
const target = 'https://example.com/a/../b?q=%7e"<>#frag'

let service: Standalone
let client: Client

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
  expect((await client.create({ long_url: target, custom_alias: 'there' })).status).toBe(201)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

/** Headers but for those of the connection, and the request's id. */
function ownHeaders(answer: Answer): (readonly [string, string])[] {
  const others = ['connection', 'keep-alive', 'date', 'x-request-id']
  return answer.headers.filter(([name]) => !others.includes(name.toLowerCase()))
}

/** Moves the end of a link, in the database itself. */
function setExpiry({ dataDir }: Standalone, code: string, expiresAtMs: number): void {
  const db = new DatabaseSync(join(dataDir, 'curtail.db'))
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
  test('is 302 with the target byte for byte and these headers alone', async () => {
    const answer = await client.follow('there')
    expect(answer.status).toBe(302)
    expect(ownHeaders(answer)).toEqual(redirectHeaders)
    expect(answer.body.toString()).toBe(`Redirecting to ${target}\n`)
  })

  test('has no body for HEAD, and the connection goes on', async () => {
    const connection = await openConnection(service.port)
    const answer = await connection.exchange({ method: 'HEAD', path: '/there' })
    expect(answer.status).toBe(302)
    expect(ownHeaders(answer)).toEqual(redirectHeaders)
    expect((await connection.exchange({ path: '/there' })).status).toBe(302)
    expect(connection.rest).toHaveLength(0)
    connection.close()
  })

  test.each([
    ...['/there?', '/there?q=1&r', '/there?https://elsewhere.example/', '/%74here', '/%74%68ere'],
    ...['http://127.0.0.1/there', 'http://other.example/there?q', 'HTTP://x:1/%74here'],
  ])('is the same at %s', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await client.ask({ method, path })
      expect([answer.status, ...headersOf(answer, 'Location')]).toEqual([302, target])
    }
  })

  test('is the same where a page is asked for, and with headers that mean nothing', async () => {
    const headers = {
      Accept: 'text/html',
      Expect: 'something',
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'If-None-Match': '*',
      Range: 'bytes=0-1',
    }
    const answer = await client.ask({ path: '/there', headers })
    expect(answer.status).toBe(302)
    expect(ownHeaders(answer)).toEqual(redirectHeaders)
  })

  test('comes in order where requests are sent without waiting', async () => {
    const codes = await Promise.all(
      Array.from({ length: 8 }, async (_, i) =>
        codeOf(await client.create({ long_url: `https://example.com/${i}` })),
      ),
    )
    const paths = [...codes, 'nowhere', 'there', 'v1/urls', '', codes[0] ?? '']
    const connection = await openConnection(service.port)
    connection.send(Buffer.concat(paths.map((path) => requestBytes({ path: `/${path}` }))))
    const seen: unknown[] = []
    while (seen.length < paths.length) {
      const answer = await connection.answer()
      seen.push(headerOf(answer, 'Location') ?? answer.status)
    }
    connection.close()
    const inOrder = codes.map((_, i) => `https://example.com/${i}`)
    expect(seen).toEqual([...inOrder, 404, target, 405, 200, 'https://example.com/0'])
  })

  test('is given to HTTP/1.0 without Host, and the connection ends', async () => {
    const connection = await openConnection(service.port)
    connection.send('GET /there HTTP/1.0\r\n\r\n')
    const answer = await connection.answer()
    expect([answer.status, headerOf(answer, 'Location')]).toEqual([302, target])
    expect(await connection.ended).toBe('end')
    connection.close()
  })
})

const nowhere: readonly string[] = [
  ...['/there/', '/there/deeper', '/there//', '//there', '///', '/./there', '/../there', '/..'],
  ...['/THERE', '/ther', '/there.', '/there%20', '/there%', '/%zz', '/%', '/%2', '/%e4%f6', '/%00'],
  ...['/there%2F', '/%2Fthere', '/a%2Fb', '/12345678901', '/%74here%74here%74here', '/a.b', '/~'],
  ...['/there;x', '/there&x', '/*', '/{code}', `/${'x'.repeat(8000)}`],
  ...['/v1', '/v1/', '/v1/urls/', '/V1/urls', '/v1/URLS', '/v1/urls/there', '/v1//urls', '/v1/%zz'],
  ...['/docs/', '/DOCS', '/Docs', '/index.html', '/openapi.JSON', '/problems', '/problems/'],
  ...['/problems/none', '/problems/%zz', '/problems/__proto__', '/problems/toString', '/assets'],
  ...['/assets/', '/assets/none', '/assets/../main.ts', '/assets/%2e%2e%2fmain.ts', '/assets/%zz'],
  ...[
    '/admin',
    '/admin/links/there',
    '/metrics',
    '/livez',
    '/readyz',
    '/constructor',
    '/__proto__',
  ],
  ...[
    'http://127.0.0.1/none',
    'http://x/a/../there',
    'http://x//there',
    '//x[#',
    '//[',
    '//x@[y#',
    '//%zz@x#',
    '/there#x',
  ],
]

describe('404', () => {
  test.each(nowhere)('%s', async (path) => {
    const answer = await client.ask({ path })
    expect(answer.status).toBe(404)
    expect(headerOf(answer, 'Cache-Control')).toBe('no-store')
    expect(jsonOf(answer)['type']).toBe(`${service.linkBase}/problems/not-found`)
    const head = await client.ask({ method: 'HEAD', path })
    expect([head.status, head.body.length]).toEqual([404, 0])
    expect(ownHeaders(head).length).toBe(ownHeaders(answer).length)
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
  ])('Accept: %s gets %s', async (accept, type) => {
    for (const path of ['/nowhere', '/there/', '/%zz', '/problems/none']) {
      const headers = accept === undefined ? {} : { Accept: accept }
      const answer = await client.ask({ path, headers })
      expect(headerOf(answer, 'Content-Type')).toBe(type)
      expect(headerOf(answer, 'Cache-Control')).toBe('no-store')
    }
  })

  test('is the same for unknown, expired, disabled and deleted links', async () => {
    const admin = async (method: string, path: string) => {
      const done = await fetch(`${service.adminUrl}/admin/links/${path}`, { method })
      expect(done.ok).toBe(true)
    }
    for (const alias of ['expired', 'disabled', 'deleted']) {
      const body = { long_url: target, custom_alias: alias, ttl_days: 1 }
      expect((await client.create(body)).status).toBe(201)
    }
    setExpiry(service, 'expired', Date.now())
    await admin('POST', 'disabled/disable')
    await admin('DELETE', 'deleted')
    for (const headers of [{}, { Accept: 'text/html' }]) {
      const unknown = await client.ask({ path: '/unknown', headers })
      for (const code of ['expired', 'disabled', 'deleted']) {
        const answer = await client.ask({ path: `/${code}`, headers })
        expect([answer.status, ownHeaders(answer)]).toEqual([404, ownHeaders(unknown)])
        expect(withoutId(answer)).toBe(withoutId(unknown))
      }
    }
  })
})

const withoutId = (answer: Answer) =>
  answer.body.toString().replaceAll(headerOf(answer, 'X-Request-Id') ?? '', 'id')

describe('the end of a link', () => {
  test('is kept to the millisecond, also by what is in memory', async () => {
    await client.create({ long_url: target, custom_alias: 'ending', ttl_days: 1 })
    const expiresAtMs = Date.now() + 3000
    setExpiry(service, 'ending', expiresAtMs)
    const statuses = new Set<number>()
    for (let nowMs = Date.now(); !statuses.has(404); nowMs = Date.now()) {
      const { status } = await client.follow('ending')
      statuses.add(status)
      // It was judged between the two readings of the same clock.
      if (status === 302) expect(nowMs).toBeLessThan(expiresAtMs)
      else expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs)
    }
    expect([...statuses]).toEqual([302, 404])
  })

  test('keeps the alias reserved', async () => {
    await client.create({ long_url: target, custom_alias: 'ended', ttl_days: 1 })
    setExpiry(service, 'ended', Date.now() - 1)
    expect((await client.follow('ended')).status).toBe(404)
    const again = await client.ask(createAsk({ long_url: target, custom_alias: 'ended' }))
    expect(again.status).toBe(409)
  })
})

test(
  'REDIRECT_STATUS=301 answers 301, kept for 300 s or until the link ends',
  async () => {
    const permanent = await startStandalone({ env: { REDIRECT_STATUS: '301' } })
    const other = await openClient(permanent.port)
    try {
      await other.create({ long_url: target, custom_alias: 'for-ever' })
      await other.create({ long_url: target, custom_alias: 'ending', ttl_days: 1 })
      const kept = await other.follow('for-ever')
      expect(kept.status).toBe(301)
      expect(headerOf(kept, 'Location')).toBe(target)
      expect(headerOf(kept, 'Cache-Control')).toBe('private, max-age=300')
      setExpiry(permanent, 'ending', Date.now() + 100_000)
      const ending = headerOf(await other.follow('ending'), 'Cache-Control') ?? ''
      const seconds = Number(/^private, max-age=(\d+)$/.exec(ending)?.[1])
      expect(seconds).toBeGreaterThan(80)
      expect(seconds).toBeLessThanOrEqual(100)
      expect(headerOf(await other.follow('none'), 'Cache-Control')).toBe('no-store')
    } finally {
      other.close()
      await permanent.stop()
    }
  },
  START_MS_MAX,
)
