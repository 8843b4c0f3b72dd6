// The audit log of the admin API: one line for each requested change, even if it is rejected or
// fails, or if the client has closed the connection before the result is known.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { serveApp } from '../../../test/kit/http/serve-app.ts'
import { createMemoryLinkStore } from '../../../test/kit/stores/memory-link-store.ts'
import { createMemoryReportStore } from '../../../test/kit/stores/memory-report-store.ts'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { createLinkOperations } from '../../admin/set-link-state.ts'
import { createHealth } from '../../process/health.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { ImportResult } from '../../transfer/import-result.ts'
import { type AdminApiDeps, adminRoutes } from './api.ts'
import { createAdminApp } from './app.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const token = 'a-token'

/** The admin port with a link `abc`, and the lines of its log. */
async function open(change: Partial<AdminApiDeps> = {}, onChanged = () => true) {
  const links = createMemoryLinkStore()
  await links.insertIfAbsent(sampleLink({ code: 'abc' }))
  const operations = createLinkOperations({ links, nowMs: Date.now, onChanged })
  const imports = { importBatch: () => Promise.resolve([]) }
  const readPools = () => Promise.resolve([])
  const reports = createMemoryReportStore()
  const lists = { API_KEYS: undefined, BLOCKED_TARGETS: undefined }
  const blocked = { has: () => undefined }
  const stores = { links, reports, readPools, lists, blocked }
  const deps = { operations, imports, nowMs: Date.now, ...stores, ...change }
  const lines: Record<string, unknown>[] = []
  const info = (fields: object, msg: string) => void lines.push({ ...fields, msg })
  const ignore = () => undefined
  const others = { debug: ignore, warn: ignore, error: ignore }
  const log = { info, ...others } as unknown as Parameters<typeof createAdminApp>[0]['log']
  const { url, port, close } = await serveApp(
    createAdminApp({
      health: createHealth([]),
      metrics: createMetrics(),
      log,
      baseUrl: 'https://curtail.example',
      token,
      api: adminRoutes({ ...deps, log }, 'https://curtail.example'),
      changesLinks: true,
    }),
  )
  cleanUps.push(close)
  const send = async (
    request: string,
    headers: Record<string, string> = {},
    body: string | null = null,
  ) => {
    const [method = '', path = ''] = request.split(' ')
    const own = { Authorization: `Bearer ${token}`, 'X-Operator': 'ann', 'X-Request-Id': 'r-1' }
    const response = await fetch(`${url}/admin${path}`, {
      method,
      headers: { ...own, ...headers },
      body,
    })
    await response.arrayBuffer()
    return response.status
  }
  return { send, lines, port }
}

const line = (fields: object) => {
  const client = { operator: 'ann', address: '127.0.0.1', requestId: 'r-1' }
  return { ...client, ...fields, msg: 'operator action' }
}
/** The lines as they are written: without members that are `undefined`. */
const written = (lines: readonly object[]) => JSON.parse(JSON.stringify(lines)) as unknown

test.each([
  ['POST /links/abc/disable', 200, { action: 'disable', code: 'abc', outcome: 'success' }],
  ['POST /links/abc/enable', 200, { action: 'enable', code: 'abc', outcome: 'success' }],
  ['POST /links/%61bc/enable', 200, { action: 'enable', code: 'abc', outcome: 'success' }],
  ['DELETE /links/abc', 204, { action: 'delete', code: 'abc', outcome: 'success' }],
  ['POST /links/none/disable', 404, { action: 'disable', code: 'none', outcome: 'not-found' }],
  ['DELETE /links/a%20b', 404, { action: 'delete', outcome: 'not-found' }],
  ['DELETE /links/a%zz', 404, { action: 'delete', outcome: 'not-found' }],
  ['POST /links/import', 415, { action: 'import', outcome: 'rejected' }],
])('%s returns %i and writes one line', async (request, status, fields) => {
  const { send, lines } = await open()
  expect(await send(request)).toBe(status)
  await waitFor('the line', () => lines.length > 0)
  expect(written(lines)).toEqual([line(fields)])
})

test('a request that changes nothing writes no line', async () => {
  const { send, lines } = await open()
  const reads = ['GET /links', 'GET /links/abc', 'HEAD /links/abc', 'GET /links/abc/disable']
  for (const request of [...reads, 'POST /links/abc', 'POST /links/abc/burn', 'GET /pools']) {
    await send(request)
  }
  expect(lines).toEqual([])
})

test('an attempt with a wrong token writes its line', async () => {
  const { send, lines } = await open()
  expect(await send('DELETE /links/abc', { Authorization: 'Bearer other' })).toBe(401)
  await waitFor('the line', () => lines.length > 0)
  expect(written(lines)).toEqual([line({ action: 'delete', code: 'abc', outcome: 'unauthorized' })])
  expect(JSON.stringify(lines)).not.toContain('other')
})

test.each([
  ['the store', new StoreError('no response', { outcome: 'unknown' }), 503, 'store-unavailable'],
  ['an unexpected error', new Error('a fault of the test'), 500, 'failed'],
])('a change that fails because of %s writes its line', async (...given) => {
  const [, error, status, outcome] = given
  const links = createMemoryLinkStore()
  const operations = createLinkOperations({
    links: { ...links, setDisabled: () => Promise.reject(error) },
    nowMs: Date.now,
    onChanged: () => true,
  })
  const { send, lines } = await open({ operations })
  expect(await send('POST /links/abc/disable')).toBe(status)
  await waitFor('the line', () => lines.length > 0)
  expect(written(lines)).toEqual([line({ action: 'disable', code: 'abc', outcome })])
})

test('a change that the cache has not confirmed is distinguished', async () => {
  const { send, lines } = await open({}, () => false)
  expect(await send('POST /links/abc/disable')).toBe(503)
  expect(written(lines)).toEqual([
    line({ action: 'disable', code: 'abc', outcome: 'cache-unavailable' }),
  ])
})

const resultOf = (result: ImportResult['result']): ImportResult => {
  return { short_code: null, result, code: null, detail: null }
}

test.each([
  [['created', 'exists', 'created', 'conflict'], 'success', 2],
  [['created', 'failed'], 'store-unavailable', 1],
] as const)('an import with the results %j writes one line', async (results, outcome, links) => {
  const imports = { importBatch: () => Promise.resolve(results.map(resultOf)) }
  const { send, lines } = await open({ imports })
  const type = { 'Content-Type': 'application/x-ndjson' }
  expect(await send('POST /links/import', type, '{}')).toBe(200)
  expect(written(lines)).toEqual([line({ action: 'import', outcome, links })])
})

test.each([
  ['no name', {}],
  ['a name of 65 characters', { 'X-Operator': 'x'.repeat(65) }],
  ['a name with a space', { 'X-Operator': 'a b' }],
  ['another character', { 'X-Operator': 'r\u00e9' }],
])('the line has no operator if the client sends %s', async (_, headers) => {
  const { send, lines } = await open()
  await send('POST /links/abc/disable', { 'X-Operator': '', ...headers })
  expect(lines).toHaveLength(1)
  expect(lines[0]?.['operator']).toBeUndefined()
})

test.each([
  ['success', undefined],
  ['store-unavailable', new StoreError('no response', { outcome: 'unknown' })],
  ['failed', new Error('a fault of the test')],
])('a change whose client closes the connection writes the outcome %s', async (outcome, fault) => {
  let complete = () => undefined as unknown
  let isStarted = false
  const operations = createLinkOperations({
    links: {
      ...createMemoryLinkStore(),
      setDisabled: ({ code }) => {
        isStarted = true
        return new Promise((resolve, reject) => {
          complete = () => {
            if (fault === undefined) resolve(sampleLink({ code, disabledAtMs: 1 }))
            else reject(fault)
          }
        })
      },
    },
    nowMs: Date.now,
    onChanged: () => true,
  })
  const { port, lines } = await open({ operations })
  const socket = connect(port, '127.0.0.1')
  const client = 'X-Operator: ann\r\nX-Request-Id: r-1\r\n'
  const headers = `Host: localhost\r\nAuthorization: Bearer ${token}\r\n${client}`
  socket.write(`POST /admin/links/abc/disable HTTP/1.1\r\n${headers}\r\n`)
  await waitFor('the change', () => isStarted)
  socket.destroy()
  await once(socket, 'close')
  await new Promise((resolve) => setTimeout(resolve, 50)) // until the server detects the close
  expect(lines).toEqual([])
  complete()
  await waitFor('the line', () => lines.length > 0)
  expect(written(lines)).toEqual([line({ action: 'disable', code: 'abc', outcome })])
})
