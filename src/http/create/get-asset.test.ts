// What pages and crawlers fetch, and how long they may cache it.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'

let app: RunningCreateApp

beforeAll(async () => {
  app = await startCreateApp(createdAsRequested)
})
afterAll(() => app.stop())

test('every asset of a page is served, and immutable under its hash', async () => {
  for (const path of ['/', '/docs']) {
    const page = await (await fetch(app.url + path)).text()
    const assets = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, url]) => url)
    expect(assets.length).toBeGreaterThan(1)
    for (const url of assets) {
      const { status, headers } = await fetch(app.url + String(url))
      expect(status).toBe(200)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('content-type')).toMatch(/^text\/(css|javascript); charset=utf-8$/)
    }
  }
})

test('an asset is not cached under the hash of another release', async () => {
  for (const query of ['', '?v=', '?v=older']) {
    const { headers } = await fetch(`${app.url}/assets/page.css${query}`)
    expect(headers.get('cache-control')).toBe('no-cache')
  }
})

test('an unchanged asset gets 304', async () => {
  const etag = (await fetch(`${app.url}/assets/page.js`)).headers.get('etag') ?? ''
  const second = await fetch(`${app.url}/assets/page.js`, { headers: { 'If-None-Match': etag } })
  expect([second.status, await second.text()]).toEqual([304, ''])
})

test('other files are not found', async () => {
  for (const name of ['favicon.ico', 'constructor', '..%2Fpage.css', 'page.ts']) {
    expect((await fetch(`${app.url}/assets/${name}`)).status).toBe(404)
  }
})

test('the icon is an ICO file with several sizes', async () => {
  const response = await fetch(`${app.url}/favicon.ico`)
  const bytes = Buffer.from(await response.arrayBuffer())
  expect(response.headers.get('content-type')).toBe('image/x-icon')
  expect([bytes.readUInt16LE(0), bytes.readUInt16LE(2), bytes.readUInt16LE(4)]).toEqual([0, 1, 3])
})

test('robots.txt allows the pages and nothing else', async () => {
  const response = await fetch(`${app.url}/robots.txt`)
  const lines = (await response.text()).trim().split('\n')
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(lines[0]).toBe('User-agent: *')
  expect(lines).toContain('Disallow: /')
  expect(lines).toEqual(expect.arrayContaining(['Allow: /$', 'Allow: /docs$']))
})
