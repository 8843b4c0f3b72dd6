// `findLinks` on an HTTP server: exactly the matches are printed, page by page, and a scan that
// stops continues without omitting one.
import { Writable } from 'node:stream'
import { afterEach, expect, test } from '@jest/globals'
import { type ApiFault, apiLink, startLinksApi } from '../../test/kit/http/links-api.ts'
import { type FindOptions, findLinks } from './find-links.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const codes = Array.from({ length: 1200 }, (_, i) => `c${i}`)
const matching = codes.filter((_, i) => i % 100 === 7)

async function start(given: Partial<FindOptions> = {}, fault?: ApiFault) {
  const links = codes.map((code, i) => {
    const created_at = `2026-01-01T00:00:00.${String((i * 7) % 1000).padStart(3, '0')}Z`
    return apiLink(code, { created_at, state: i % 100 === 7 ? 'disabled' : 'active' })
  })
  const api = await startLinksApi(links, fault)
  cleanUps.push(api.close)
  const written: string[] = []
  const pages: number[] = []
  const output = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  const options: FindOptions = {
    name: 'link list',
    target: { url: api.url, token: undefined },
    after: undefined,
    linksPerSecond: 1_000_000,
    matches: ({ state }) => state === 'disabled',
    render: ({ short_code: code }) => `${code}\n`,
    output,
    signal: new AbortController().signal,
    onPage: (scanned) => pages.push(scanned),
    onRetry: () => undefined,
    pause: () => Promise.resolve(),
    ...given,
  }
  return { found: findLinks(options), written, pages, api }
}

test('the matches of each page are printed, and counted', async () => {
  const { found, written, pages } = await start()
  // 807 × 7 = 5649, 507 × 7 = 3549: the maximum modulo 1000 is 949, of 707 × 7 = 4949.
  const lastCreatedAt = '2026-01-01T00:00:00.949Z'
  expect(await found).toEqual({ scanned: 1200, matched: 12, lastCreatedAt })
  expect(written.map((lines) => lines.split('\n').length - 1)).toEqual([5, 5, 2])
  expect(written.join('')).toBe(matching.map((code) => `${code}\n`).join(''))
  expect(pages).toEqual([500, 1000, 1200])
})

test('without a match, nothing is printed', async () => {
  const { found, written } = await start({ matches: () => false })
  expect(await found).toEqual({ scanned: 1200, matched: 0, lastCreatedAt: undefined })
  expect(written).toEqual([])
})

test('a scan that stops reports the link after which another scan continues it', async () => {
  const reject: ApiFault = (request, res) => {
    if (!request.includes('after=c999')) return false
    res.writeHead(401).end('{"detail":"no token"}')
    return true
  }
  const first = await start({}, reject)
  await expect(first.found).rejects.toThrow(
    'link list stopped after 1000 links: GET /admin/links?after=c999&limit=500 returned 401: ' +
      'no token; continue with --after=c999',
  )
  const second = await start({ after: 'c999' })
  expect(await second.found).toMatchObject({ scanned: 200, matched: 2 })
  expect([...first.written, ...second.written].join('')).toBe(`${matching.join('\n')}\n`)
})
