// `POST /admin/actions`: the audit line of a change of an operator list, which bodies are accepted,
// and that without a token only programs on this machine are admitted.
import { afterEach, expect, test } from '@jest/globals'
import { serveApp } from '../../../test/kit/http/serve-app.ts'
import { createHealth } from '../../process/health.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { bareApp } from '../bare-app.ts'
import { createAdminApp } from './app.ts'
import { actionRoutes, type ListPaths } from './post-action.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const UNSET_SETTING = 'Curtail-Unset-Setting'
const JSON_TYPE = 'application/json'
const created = {
  ...{ action: 'key-create', keys: ['shop'], creator: '42', count: 1, outcome: 'success' },
}
const added = { action: 'block-add', targets: ['evil.example'], count: 1, outcome: 'success' }

/** The admin port of a controller, and the lines of its log; `address` replaces the client's. */
async function open({ address, lists }: { address?: string; lists?: ListPaths } = {}) {
  const lines: Record<string, unknown>[] = []
  const info = (fields: object, msg: string) => void lines.push({ ...fields, msg })
  const ignore = () => undefined
  const others = { debug: ignore, warn: ignore, error: ignore }
  const log = { info, ...others } as unknown as Parameters<typeof createAdminApp>[0]['log']
  const api = actionRoutes({ log, baseUrl: 'https://curtail.example', ...(lists && { lists }) })
  const about = { health: createHealth([]), metrics: createMetrics(), token: undefined }
  const app = bareApp()
  app.use((req, _res, next) => {
    if (address !== undefined)
      Object.defineProperty(req.socket, 'remoteAddress', { value: address })
    next()
  })
  app.use(createAdminApp({ ...about, log, baseUrl: 'https://curtail.example', api }))
  const { url, close } = await serveApp(app)
  cleanUps.push(close)
  const send = async (
    body: unknown,
    { type = JSON_TYPE, headers = {}, method = 'POST', path = '/actions' } = {},
  ) => {
    const response = await fetch(`${url}/admin${path}`, {
      method,
      headers: { 'Content-Type': type, 'X-Operator': 'ann', 'X-Request-Id': 'r-1', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    const content = await response.text()
    const problem = content === '' ? {} : (JSON.parse(content) as Record<string, unknown>)
    return { status: response.status, problem, unset: response.headers.get(UNSET_SETTING) }
  }
  return { send, lines }
}

test.each([
  [created],
  [{ action: 'key-revoke', keys: ['a', 'b'], count: 2, outcome: 'unknown' }],
  [added],
  [{ action: 'block-remove', targets: ['sites.example/bad'], count: 0, outcome: 'success' }],
  [{ action: 'block-import', targets: [], count: 0, outcome: 'success' }],
])('%j is written as it was reported', async (action) => {
  const { send, lines } = await open()
  expect(await send(action)).toEqual({ status: 204, problem: {}, unset: null })
  const client = { operator: 'ann', address: '127.0.0.1', requestId: 'r-1' }
  const msg = 'operator action'
  expect(lines).toEqual([{ ...action, ...client, msg }])
})

test.each([
  [created, { API_KEYS: undefined, BLOCKED_TARGETS: 'b.txt' }, 'API_KEYS'],
  [created, { API_KEYS: 'k', BLOCKED_TARGETS: undefined }, null],
  [added, { API_KEYS: 'k', BLOCKED_TARGETS: undefined }, 'BLOCKED_TARGETS'],
  [added, { API_KEYS: undefined, BLOCKED_TARGETS: 'b.txt' }, null],
])('the response to %j of a process with the lists %j names %j', async (action, lists, setting) => {
  const { send, lines } = await open({ lists })
  expect(await send(action)).toEqual({ status: 204, problem: {}, unset: setting })
  expect(lines).toHaveLength(1)
})

const hash = 'a'.repeat(64)

test.each([
  ['another action', { ...created, action: 'delete' }, '/action', /key-create, .*block-import/],
  ['no action', { count: 1 }, '/action', /required|key-create/],
  [
    'an unknown member',
    { ...added, key: 'x' },
    '/key',
    /is unknown: allowed are action, outcome, count and targets$/,
  ],
  [
    'targets of a key',
    { ...created, targets: ['a.example'] },
    '/targets',
    /is unknown: allowed are action, outcome, count, keys and creator$/,
  ],
  [
    'a creator of a revoked key',
    { ...created, action: 'key-revoke' },
    '/creator',
    /is unknown: allowed are action, outcome, count and keys$/,
  ],
  ['no creator', { ...created, creator: undefined }, '/creator', /is required/],
  ['a creator of 0', { ...created, creator: '0' }, '/creator', /from 1 to 9223372036854775807/],
  [
    'a creator that is too large',
    { ...created, creator: '9223372036854775808' },
    '/creator',
    /1 to/,
  ],
  [
    'an API key',
    { ...created, keys: [`curtail_${'A'.repeat(43)}`] },
    '/keys/0',
    /names of API keys/,
  ],
  ['a hash', { ...created, keys: [hash] }, '/keys/0', /names of API keys/],
  ['no keys', { ...created, keys: [] }, '/keys', /1 to 5 names/],
  ['six keys', { ...created, keys: ['a', 'b', 'c', 'd', 'e', 'f'] }, '/keys', /1 to 5 names/],
  ['a long target', { ...added, targets: ['x'.repeat(201)] }, '/targets/0', /1 to 200 visible/],
  ['a line break', { ...added, targets: ['a\nb'] }, '/targets/0', /visible ASCII/],
  ['a negative count', { ...added, count: -1 }, '/count', /integer of 0 or more/],
  ['another outcome', { ...added, outcome: 'failed' }, '/outcome', /success or unknown/],
  ['no object', [], '', /must be a JSON object with the member action/],
])('%s is rejected with its place, and not written', async (...given) => {
  const [, body, pointer, detail] = given
  const { send, lines } = await open()
  const { status, problem } = await send(body)
  expect(status).toBe(422)
  expect(problem['errors']).toEqual([
    { pointer, code: expect.stringMatching(/^[a-z-]+$/), detail: expect.stringMatching(detail) },
  ])
  expect(problem['detail']).toMatch(detail)
  expect(lines).toEqual([])
})

test.each([
  ['another type', 415, added, { type: 'text/plain' }],
  ['no JSON', 400, '{', {}],
  ['a body of 17 KiB', 413, { ...added, targets: ['x'.repeat(17 * 1024)] }, {}],
  ['another method', 405, undefined, { method: 'DELETE' }],
  ['a web page', 403, added, { headers: { Origin: 'http://localhost' } }],
])('%s is rejected, and not written', async (...given) => {
  const [, status, body, more] = given
  const { send, lines } = await open()
  expect((await send(body, more)).status).toBe(status)
  expect(lines).toEqual([])
})

test.each([
  ['192.0.2.7', 403],
  ['127.0.0.1', 404],
])('a request from %s that would change a link gets %i, and is not written', async (...given) => {
  const [address, status] = given
  const { send, lines } = await open({ address })
  const deletion = { method: 'DELETE', path: '/links/abc' }
  expect((await send(undefined, deletion)).status).toBe(status)
  await new Promise((resolve) => setTimeout(resolve, 50)) // the response is closed
  expect(lines).toEqual([])
})

test.each([
  ['192.0.2.7', 403],
  ['::ffff:192.0.2.7', 403],
  ['fd00::1', 403],
  ['::ffff:127.0.0.1', 204],
  ['::1', 204],
])('without a token, a connection from %s gets %i', async (address, status) => {
  const { send, lines } = await open({ address })
  expect((await send(added)).status).toBe(status)
  expect(lines).toHaveLength(status === 204 ? 1 : 0)
})
