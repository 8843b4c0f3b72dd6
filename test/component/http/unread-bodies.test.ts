// Unread request bodies: the server discards a bounded amount after its response, the response
// reaches the client, and a client that waits for 100 gets the final response instead.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createLinkRequest } from '../../kit/http/client.ts'
import { CHUNK, sendUntilClosed } from '../../kit/http/endless-body.ts'
import {
  type RawResponse,
  headerOf,
  openConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 60_000
/** The bound of lingering-close.ts, plus the socket buffers of both sides. */
const ACCEPTED_BYTES_MAX = 64 * 1024 + 1024 * 1024
/** The time limit of lingering-close.ts for discarding. */
const DISCARD_MS_MAX = 2000

let service: Standalone

beforeAll(async () => {
  service = await startStandalone()
}, TEST_MS_MAX)

afterAll(() => service.stop(), TEST_MS_MAX)

const headOf = (path: string, ...headers: readonly string[]) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
const json = 'Content-Type: application/json'
const huge = 'Content-Length: 10000000000'

const refused: Record<string, { head: string; status: number; admin?: boolean }> = {
  'a create of a huge length': { head: headOf('/v1/urls', json, huge), status: 413 },
  'a form of a huge length': {
    head: headOf('/', 'Content-Type: application/x-www-form-urlencoded', huge),
    status: 413,
  },
  'another media type': { head: headOf('/v1/urls', 'Content-Type: text/plain', huge), status: 415 },
  'a path that is unknown': { head: headOf('/no/such/path', huge), status: 404 },
  'a method that is not served': { head: headOf('/docs', huge), status: 405 },
  'the admin port': { head: headOf('/metrics', huge), status: 405, admin: true },
}

const portOf = (isAdmin = false) =>
  isAdmin ? Number(new URL(service.adminUrl).port) : service.port

describe.each(Object.entries(refused))('%s', (_, { head, status, admin }) => {
  test('the response is immediate, and the connection closes while the client sends', async () => {
    const connection = await openConnection(portOf(admin))
    connection.send(head)
    const answered = connection.nextResponse()
    const poured = sendUntilClosed(connection, 64 * ACCEPTED_BYTES_MAX)
    const answer = await answered
    expect([answer.status, headerOf(answer, 'Connection')]).toEqual([status, 'close'])
    expect(await withinDeadline('the end', poured)).toBeLessThan(ACCEPTED_BYTES_MAX)
  }, 30_000)

  test('the connection of a client that sends nothing more is closed, too', async () => {
    const connection = await openConnection(portOf(admin))
    connection.send(head)
    expect((await connection.nextResponse()).status).toBe(status)
    await withinDeadline('the end', connection.closed, 5 * DISCARD_MS_MAX)
    connection.close()
  }, 30_000)

  test('a client that waits for 100 gets the response instead', async () => {
    const connection = await openConnection(portOf(admin))
    connection.send(head.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'))
    const answer = await connection.nextResponse()
    expect([answer.status, headerOf(answer, 'Connection')]).toEqual([status, 'close'])
    connection.close()
  })
})

test('endless chunks: 413, and the connection closes', async () => {
  const connection = await openConnection(service.port)
  connection.send(headOf('/v1/urls', json, 'Transfer-Encoding: chunked'))
  const answered = connection.nextResponse()
  connection.send(`${CHUNK.length.toString(16)}\r\n${CHUNK.toString()}\r\nfffffff\r\n`)
  const poured = sendUntilClosed(connection, 64 * ACCEPTED_BYTES_MAX)
  expect((await answered).status).toBe(413)
  expect(await withinDeadline('the end', poured)).toBeLessThan(ACCEPTED_BYTES_MAX)
})

test('an expected body is requested with 100, and the connection stays open', async () => {
  const connection = await openConnection(service.port)
  const ask = createLinkRequest({ long_url: 'https://example.com/' }, { Expect: '100-continue' })
  const bytes = requestBytes(ask)
  const bodyAt = bytes.indexOf('\r\n\r\n') + 4
  connection.send(bytes.subarray(0, bodyAt))
  expect((await connection.nextResponse()).status).toBe(100)
  connection.send(bytes.subarray(bodyAt))
  expect((await connection.nextResponse()).status).toBe(201)
  expect((await connection.exchange({ path: '/robots.txt' })).status).toBe(200)
  connection.close()
})

test('a short unread body is skipped, and the connection stays open', async () => {
  const connection = await openConnection(service.port)
  const statuses: RawResponse['status'][] = []
  for (const ask of [{ method: 'POST', path: '/no/such', body: 'x'.repeat(9000) }, { path: '/' }]) {
    statuses.push((await connection.exchange(ask)).status)
  }
  expect(statuses).toEqual([404, 200])
  connection.close()
})

test('a short body that does not arrive closes its connection', async () => {
  const connection = await openConnection(service.port)
  connection.send(headOf('/no/such', 'Content-Length: 10'))
  expect((await connection.nextResponse()).status).toBe(404)
  await withinDeadline('the end', connection.closed, 5 * DISCARD_MS_MAX)
  expect(connection.rest).toHaveLength(0)
  connection.close()
})
