// `GET /admin/links`: pages of links in the format of a single link, and rejected requests.
import { afterEach, expect, test } from '@jest/globals'
import { serveApp } from '../../../test/kit/http/serve-app.ts'
import { createMemoryLinkStore } from '../../../test/kit/stores/memory-link-store.ts'
import { createMemoryReportStore } from '../../../test/kit/stores/memory-report-store.ts'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { createLinkOperations } from '../../admin/set-link-state.ts'
import type { ScannedStore } from '../../links/link-store.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { bareApp } from '../bare-app.ts'
import { type AdminApiDeps, adminRoutes } from './api.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** An admin API on a store in memory. */
async function open(
  replaced: Partial<ScannedStore> = {},
  blocked: AdminApiDeps['blocked'] = { has: () => undefined },
) {
  const links = { ...createMemoryLinkStore(), ...replaced }
  const nowMs = () => 1_790_000_001_000
  const operations = createLinkOperations({ links, nowMs, onChanged: () => true })
  const imports = { importBatch: () => Promise.reject(new Error('not in use')) }
  const reports = createMemoryReportStore()
  const deps = { operations, links, reports, imports, readPools: () => Promise.resolve([]), nowMs }
  const log = { info: () => undefined }
  const lists = { API_KEYS: undefined, BLOCKED_TARGETS: undefined }
  const app = bareApp().use(
    '/admin',
    adminRoutes({ ...deps, log, lists, blocked }, 'https://curtail.example'),
  )
  const { url, close } = await serveApp(app)
  cleanUps.push(close)
  const send = async (path: string) => {
    const response = await fetch(`${url}/admin${path}`)
    return { response, body: (await response.json()) as Record<string, unknown> }
  }
  return { links, send }
}

test('each link of a page is in the format of the single link', async () => {
  const { links, send } = await open()
  await links.insertIfAbsent(sampleLink({ code: 'a', creatorId: 2n ** 63n - 1n }))
  await links.insertIfAbsent(sampleLink({ code: 'b', expiresAtMs: 1_790_000_000_999 }))
  await links.insertIfAbsent(sampleLink({ code: 'c', disabledAtMs: 1, creatorId: -1n }))
  await links.insertIfAbsent(sampleLink({ code: 'd' }))
  await links.erase({ code: 'd', deletedAtMs: 1 })
  const { response, body } = await send('/links')
  expect([response.status, response.headers.get('Cache-Control')]).toEqual([200, 'no-store'])
  const single = await Promise.all(
    ['a', 'b', 'c', 'd'].map(async (code) => (await send(`/links/${code}`)).body),
  )
  expect(body).toEqual({ links: single, next: null })
  expect(single.map((link) => [link['creator_id'], link['state']])).toEqual([
    ['9223372036854775807', 'active'],
    [null, 'expired'],
    ['-1', 'disabled'],
    [null, 'deleted'],
  ])
})

test('a link with a target states whether that is blocked, if there is a list', async () => {
  const evil = sampleLink({ code: 'a', longUrl: 'https://evil.example/' })
  const isEvil = (longUrl: string) => longUrl === evil.longUrl
  const shown = async (blocked: AdminApiDeps['blocked']) => {
    const { links, send } = await open({}, blocked)
    await links.insertIfAbsent(evil)
    await links.insertIfAbsent(sampleLink({ code: 'b' }))
    await links.insertIfAbsent(sampleLink({ code: 'c' }))
    await links.erase({ code: 'c', deletedAtMs: 1 })
    const { body } = await send('/links')
    const single = await Promise.all(
      ['a', 'b', 'c'].map(async (code) => (await send(`/links/${code}`)).body),
    )
    expect(body['links']).toEqual(single)
    return single.map((link) => [link['state'], link['target_blocked']])
  }
  expect(await shown({ has: isEvil })).toEqual([
    ['active', true],
    ['active', false],
    ['deleted', undefined],
  ])
  expect((await shown({ has: () => undefined })).map(([, value]) => value)).toEqual(
    Array.from({ length: 3 }),
  )
})

test('next is the last code of a full page, and null on the last page', async () => {
  const { links, send } = await open()
  for (const code of ['a', 'b', 'c', 'd', 'e']) await links.insertIfAbsent(sampleLink({ code }))
  const pageOf = async (query: string) => {
    const { body } = await send(`/links?${query}`)
    const codes = (body['links'] as { short_code: string }[]).map((link) => link.short_code)
    return [codes.join(''), body['next']]
  }
  expect(await pageOf('limit=2')).toEqual(['ab', 'b'])
  expect(await pageOf('after=b&limit=2')).toEqual(['cd', 'd'])
  expect(await pageOf('limit=2&after=d')).toEqual(['e', null])
  expect(await pageOf('after=e')).toEqual(['', null])
  expect(await pageOf('after=bb&limit=1000')).toEqual(['cde', null])
})

test('a page has 100 links by default', async () => {
  const { links, send } = await open()
  for (let i = 0; i < 101; i++) await links.insertIfAbsent(sampleLink())
  expect((await send('/links')).body['links']).toHaveLength(100)
})

const limitAllowed = 'limit must be an integer from 1 to 1000: it is'
const afterAllowed = 'after must consist of 1 to 10 letters, digits, - and _: it is'
test.each([
  ['limit=0', `${limitAllowed} "0"`],
  ['limit=1001', `${limitAllowed} "1001"`],
  ['limit=', `${limitAllowed} ""`],
  ['limit=1e2', `${limitAllowed} "1e2"`],
  ['limit=-1', `${limitAllowed} "-1"`],
  ['after=', `${afterAllowed} ""`],
  ['after=a/b', `${afterAllowed} "a/b"`],
  ['after=abcdefghijk', `${afterAllowed} "abcdefghijk"`],
  ['limit=1&limit=2', 'limit occurs more than once'],
  ['after=a&after=a', 'after occurs more than once'],
  ['afer=abc', '"afer" is unknown: allowed are after and limit'],
])('%s is rejected with what is allowed', async (query, cause) => {
  const { send } = await open()
  const { response, body } = await send(`/links?${query}`)
  expect(response.status).toBe(422)
  expect(body).toMatchObject({
    type: 'https://curtail.example/problems/invalid-request',
    detail: `Cannot list links: ${cause}`,
    errors: [
      {
        ...{ pointer: '', detail: `Cannot list links: ${cause}` },
        code: expect.stringMatching(/^(unknown-field|duplicate|invalid-type|out-of-range)$/),
      },
    ],
  })
})

test('if the store does not return the page, the response is 503', async () => {
  const failed = new StoreError('no response', { outcome: 'unknown' })
  const { send } = await open({ scan: () => Promise.reject(failed) })
  const { response, body } = await send('/links')
  expect([response.status, response.headers.get('Retry-After')]).toEqual([503, '1'])
  expect(body).toMatchObject({ detail: 'The store has not returned the page: retry the request' })
})
