// `POST /admin/links/import`: which bodies are accepted, and the problem for each rejected one.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { serveApp } from '../../../test/kit/http/serve-app.ts'
import { BATCH_BYTES_MAX, type ImportResult } from '../../transfer/import-result.ts'
import { bareApp } from '../bare-app.ts'
import { importLinks } from './import-links.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** The route on a port, with an importer that creates every row. */
async function startRoute(isStoreAvailable = true) {
  const batches: unknown[][] = []
  const importBatch = (rows: readonly unknown[]) => {
    batches.push([...rows])
    const result = { short_code: null, result: 'created', code: 'a', detail: null } as const
    return Promise.resolve(rows.map((): ImportResult => result))
  }
  const deps = { importBatch, isStoreAvailable: () => isStoreAvailable }
  const app = bareApp().post('/import', importLinks(deps, 'https://curtail.example'))
  const { port, url, close } = await serveApp(app)
  cleanUps.push(close)
  const send = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const type = { 'Content-Type': 'application/x-ndjson' }
    const init = { method: 'POST', body, headers: { ...type, ...headers } }
    const response = await fetch(`${url}/import`, init)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return { port, batches, send }
}

test('rows are JSON lines or a JSON array; a line that is not JSON is one bad row', async () => {
  const { send, batches } = await startRoute()
  const lines = await send('{"a":1}\r\n\n{"a":\n[2]')
  expect(lines.status).toBe(200)
  expect(lines.body['results']).toHaveLength(3)
  const array = await send('[{"a":1},2]', { 'Content-Type': 'application/json; charset=utf-8' })
  expect(array.body['results']).toHaveLength(2)
  expect(batches).toEqual([
    [{ a: 1 }, undefined, [2]],
    [{ a: 1 }, 2],
  ])
})

const json = { 'Content-Type': 'application/json' }
const rejected: readonly (readonly [
  body: string,
  content: string | Buffer,
  headers: Record<string, string>,
  name: string,
  detail: RegExp,
])[] = [
  ['another type', '{}', { 'Content-Type': 'text/csv' }, 'unsupported-media-type', /x-ndjson/],
  ['an encoding', '{}', { 'Content-Encoding': 'gzip' }, 'unsupported-media-type', /encoding/],
  ['no rows', '\n', {}, 'invalid-request', /1 to 500/],
  ['501 rows', '{}\n'.repeat(501), {}, 'invalid-request', /1 to 500/],
  ['JSON that is not an array', '{}', json, 'malformed-json', /array/],
  ['no JSON', '[', json, 'malformed-json', /array/],
  ['bytes that are not UTF-8', Buffer.of(0xff), {}, 'malformed-json', /UTF-8/],
  ['too many bytes', Buffer.alloc(BATCH_BYTES_MAX + 1), {}, 'body-too-large', /2097152 bytes/],
]

test.each(rejected)('a body with %s is rejected as a whole', async (...given) => {
  const [, body, headers, name, detail] = given
  const { send, batches } = await startRoute()
  const response = await send(body, headers)
  expect(response.body['type']).toBe(`https://curtail.example/problems/${name}`)
  expect(response.body['detail']).toMatch(detail)
  const fault = { pointer: '', code: 'out-of-range', detail: response.body['detail'] }
  expect(response.body['errors']).toEqual(name === 'invalid-request' ? [fault] : undefined)
  expect(batches).toEqual([])
})

test('while the store is unavailable, a batch gets 503', async () => {
  const { send, batches } = await startRoute(false)
  const { status, body } = await send('{}')
  expect([status, body['detail']]).toEqual([503, expect.stringMatching(/no link was imported/)])
  expect(batches).toEqual([])
})

test('a chunked body over the limit is rejected, and an aborted one is ignored', async () => {
  const { port, batches } = await startRoute()
  const headers = 'POST /import HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-ndjson\r\n'
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined) // the server may close it before all is sent
  socket.write(`${headers}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = Buffer.alloc(65_536, 'x')
  for (let i = 0; i <= BATCH_BYTES_MAX / chunk.length; i++) {
    socket.write(`10000\r\n${chunk.toString()}\r\n`)
  }
  const [response] = (await once(socket, 'data')) as [Buffer]
  expect(response.toString()).toMatch(/^HTTP\/1.1 413 /)
  socket.destroy()
  const aborted = connect(port, '127.0.0.1')
  aborted.write(`${headers}Content-Length: 100\r\n\r\n{}`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  aborted.destroy()
  await once(aborted, 'close')
  expect(batches).toEqual([])
})
