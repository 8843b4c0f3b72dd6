// The 503 of the admin API names what has not confirmed a change: the store or the link cache.
import { afterEach, expect, test } from '@jest/globals'
import { serveApp } from '../../../test/kit/http/serve-app.ts'
import { createMemoryReportStore } from '../../../test/kit/stores/memory-report-store.ts'
import type { LinkResult } from '../../admin/set-link-state.ts'
import { bareApp } from '../bare-app.ts'
import { adminRoutes } from './api.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** The response to `link disable` if the operation has this result. */
async function disable(result: LinkResult) {
  const operate = () => Promise.resolve(result)
  const operations = { show: operate, disable: operate, enable: operate, erase: operate }
  const links = { scan: () => Promise.resolve([]) }
  const imports = { importBatch: () => Promise.resolve([]) }
  const readPools = () => Promise.resolve([])
  const reports = createMemoryReportStore()
  const deps = { operations, links, reports, imports, readPools, nowMs: Date.now }
  const log = { info: () => undefined }
  const lists = { API_KEYS: undefined, BLOCKED_TARGETS: undefined }
  const blocked = { has: () => undefined }
  const app = bareApp().use(
    '/admin',
    adminRoutes({ ...deps, log, lists, blocked }, 'https://curtail.example'),
  )
  const { url, close } = await serveApp(app)
  cleanUps.push(close)
  return fetch(`${url}/admin/links/code/disable`, { method: 'POST' })
}

test.each([
  ['store-unavailable', 'The store has not confirmed the request'],
  ['cache-unavailable', 'The store has confirmed the change, but the link cache has not'],
] as const)('%s is 503, and its detail names the cause', async (kind, cause) => {
  const response = await disable({ kind })
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({
    type: 'https://curtail.example/problems/store-unavailable',
    detail: `${cause}: retry it`,
  })
})
