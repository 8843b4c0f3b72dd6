// GET of links with blocked targets: the response, how limits count it, and that stale targets are
// checked, too.
import { afterEach, expect, test } from '@jest/globals'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { createMemoryLinkStore } from '../../../test/kit/stores/memory-link-store.ts'
import { warn } from '../../../test/kit/warn.ts'
import { createLinkFinder } from '../../resolve/find-link.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { noLimits } from '../limit-requests.ts'
import type { BlockedStatus } from '../not-found.ts'
import { listen } from '../serve.ts'
import { createRedirectApp } from './app.ts'
import { createRedirectFastPath } from './get-code.ts'

const baseUrl = 'https://curtail.example'
const NOW_MS = 1_790_000_000_000
const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** The redirect service, with one link; `isBlocked` of the state decides on its target. */
async function setUp(blockedStatus: BlockedStatus) {
  const store = createMemoryLinkStore()
  const link = sampleLink({ code: 'code' })
  await store.insertIfAbsent(link)
  const state = { isBlocked: false, isStoreUp: true, nowMs: NOW_MS, misses: 0 }
  const metrics = createMetrics()
  const log = createLog({ role: 'test', level: 'silent' })
  const fastPath = createRedirectFastPath({
    finder: createLinkFinder({
      links: {
        find: (code) =>
          state.isStoreUp
            ? store.find(code)
            : Promise.reject(new StoreError('unavailable', { outcome: 'not-done' })),
      },
      nowMs: () => state.nowMs,
      metrics,
      isOnlyWriter: false,
      staleMs: 86_400_000,
    }),
    limits: {
      ...noLimits,
      onMiss() {
        state.misses++
      },
    },
    nowMs: () => state.nowMs,
    metrics,
    log,
    baseUrl,
    redirectStatus: 302,
    isBlocked: ({ longUrl }) => state.isBlocked && longUrl === link.longUrl,
    blockedStatus,
    servedPaths: new Set(),
  })
  const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
  listener.attach({ baseUrl, app: createRedirectApp({ log, baseUrl }), fastPath })
  stops.push(() => listener.drain(0)) // does not wait for idle connections
  const get = async (path: string, accept = '*/*') => {
    const url = `http://127.0.0.1:${listener.port}${path}`
    const response = await fetch(url, { redirect: 'manual', headers: { Accept: accept } })
    const own = ['content-type', 'cache-control', 'content-length', 'location', 'retry-after']
    const headers = own.map((name) => [name, response.headers.get(name)])
    const body = (await response.text()).replace(response.headers.get('x-request-id') ?? '-', 'ID')
    return { status: response.status, headers, body }
  }
  return { state, metrics, get }
}

test.each(['*/*', 'text/html'])(
  'with 404, the response to Accept: %s is that for an unknown code, and counts as a miss',
  async (accept) => {
    const { state, get } = await setUp(404)
    expect((await get('/code')).status).toBe(302)
    state.isBlocked = true
    const unknown = await get('/unknown', accept)
    expect([unknown.status, state.misses]).toEqual([404, 1])
    expect(await get('/code', accept)).toEqual(unknown)
    expect(state.misses).toBe(2)
    state.isBlocked = false
    expect((await get('/code')).status).toBe(302)
  },
)

test.each([
  [410, 'link-blocked'],
  [451, 'unavailable-for-legal-reasons'],
] as const)(
  'with %i, a blocked target has its own response, which does not count as a miss',
  async (status, name) => {
    const { state, metrics, get } = await setUp(status)
    state.isBlocked = true
    const response = await get('/code')
    expect(response.status).toBe(status)
    expect(JSON.parse(response.body)).toMatchObject({
      status,
      type: `${baseUrl}/problems/${name}`,
      request_id: 'ID',
    })
    expect(response.headers).toContainEqual(['cache-control', 'no-store'])
    const page = await get('/code', 'text/html')
    expect([page.status, page.body.includes('This link is blocked')]).toEqual([status, true])
    expect(page.headers).toContainEqual(['cache-control', 'no-store'])
    expect([state.misses, (await get('/unknown')).status, state.misses]).toEqual([0, 404, 1])
    const { values } = await metrics.requestSeconds.get()
    expect(values.map(({ labels }) => labels)).toContainEqual(
      expect.objectContaining({ route: 'code', status: String(status) }),
    )
  },
)

test('a stale target is checked before it is served while the store is unavailable', async () => {
  const { state, get } = await setUp(404)
  expect((await get('/code')).status).toBe(302)
  state.isStoreUp = false
  state.nowMs += 60_000
  expect((await get('/code')).status).toBe(302)
  expect((await get('/unknown')).status).toBe(503)
  state.isBlocked = true
  expect((await get('/code')).status).toBe(404) // from memory
  state.nowMs += 60_000
  expect((await get('/code')).status).toBe(404) // after a failed lookup
})
