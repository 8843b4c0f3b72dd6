// The QR code of a short link over HTTP: its content, headers and limits of the path.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  BASE_URL,
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import { type QrModules, readQr } from '../../../test/kit/http/read-qr.ts'

const QUIET_ZONE = 4
let app: RunningCreateApp

beforeAll(async () => {
  app = await startCreateApp(createdAsRequested)
})
afterAll(() => app.stop())

/** The modules of an image whose path consists of runs `Mx yhLENGTHv1h-LENGTHz`. */
function modulesOf(svg: string): QrModules {
  const side = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1])
  const size = side - 2 * QUIET_ZONE
  const modules = Array.from({ length: size }, () => Array<boolean>(size).fill(false))
  for (const [, x, y, length] of svg.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
    const start = Number(x) - QUIET_ZONE
    modules[Number(y) - QUIET_ZONE]?.fill(true, start, start + Number(length))
  }
  return modules
}

test.each(['a', 'abc1234', '_-_-_-_-_-'])('the image of %s encodes the link', async (code) => {
  const { status, headers, body } = await get(`/${code}.svg`)
  expect([status, headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  expect(readQr(modulesOf(body))).toBe(`${BASE_URL}/${code}`)
})

test('an image may be cached, is revalidated by its ETag, and runs no script', async () => {
  const { headers } = await get('/abc1234.svg')
  expect(headers.get('cache-control')).toBe('public, max-age=604800')
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  const etag = headers.get('etag') ?? ''
  const second = await get('/abc1234.svg', { headers: { 'If-None-Match': etag } })
  expect([second.status, second.body, second.headers.get('etag')]).toEqual([304, '', etag])
})

test('HEAD has the same headers, other methods are rejected', async () => {
  const head = await get('/abc1234.svg', { method: 'HEAD' })
  expect([head.status, head.body]).toEqual([200, ''])
  expect(Number(head.headers.get('content-length'))).toBeGreaterThan(1000)
  const post = await get('/abc1234.svg', { method: 'POST' })
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test.each(['docs', 'V1', 'abcdefghijk', 'a.b', 'a%2Fb', '%zz', '%20', ''])(
  '/%s.svg is not found: it cannot be a code',
  async (code) => {
    expect((await get(`/${code}.svg`)).status).toBe(404)
  },
)

async function get(path: string, init?: RequestInit) {
  const response = await fetch(app.url + path, init)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
