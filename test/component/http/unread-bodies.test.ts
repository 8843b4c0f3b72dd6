// Unread request bodies: the server discards a bounded amount after its response, the response
// reaches the client, and a client that waits for 100 gets the final response instead.
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createLinkRequest } from '../../kit/http/client.ts'
import { sendUntilClosed } from '../../kit/http/endless-body.ts'
import {
  type RawResponse,
  headerOf,
  openConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
/**
 * The bound, which lingering-close.test.ts verifies exactly, plus the buffers of both sockets,
 * which fill while the service is not scheduled.
 */
const ACCEPTED_BYTES_MAX = 64 * 1024 + 6 * 1024 * 1024
/** The bytes that precede the response: fewer than are discarded. */
const START = Buffer.alloc(16 * 1024, ' ')
/** The time limit of lingering-close.ts for discarding. */
const DISCARD_MS_MAX = 2000

/** A rule that denies every create. */
const noCreates = `
domain: curtail
descriptors:
  - key: route
    value: create
    descriptors: [{key: client, rate_limit: {name: none, unit: hour, requests_per_unit: 0}}]
`
const rulesFile = join(tmpdir(), `curtail-no-creates-${process.pid}.yaml`)

let service: Standalone
/** A service that denies every create. */
let denying: Standalone

beforeAll(async () => {
  service = await startStandalone()
  await writeFile(rulesFile, noCreates)
  denying = await startStandalone({ env: { RATE_LIMITS: rulesFile } })
}, TEST_MS_MAX)

afterAll(async () => {
  await service.stop()
  await denying.stop()
  await rm(rulesFile)
}, TEST_MS_MAX)

const headersTo = (path: string, ...headers: readonly string[]) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
const json = 'Content-Type: application/json'
const huge = 'Content-Length: 10000000000'

/** The port to which a request is sent. */
type Port = 'service' | 'admin' | 'denying'

const rejected: Record<string, { headers: string; status: number; on?: Port }> = {
  'a create of a huge length': { headers: headersTo('/v1/urls', json, huge), status: 413 },
  'a form of a huge length': {
    headers: headersTo('/', 'Content-Type: application/x-www-form-urlencoded', huge),
    status: 413,
  },
  'a create of another media type': {
    headers: headersTo('/v1/urls', 'Content-Type: text/plain', huge),
    status: 415,
  },
  'a request to an unknown path': { headers: headersTo('/no/such/path', huge), status: 404 },
  'an unsupported method': { headers: headersTo('/docs', huge), status: 405 },
  'a request to the admin port': { headers: headersTo('/metrics', huge), status: 405, on: 'admin' },
  'a create that exceeds its rate limit': {
    headers: `${headersTo('/v1/urls', json, 'Transfer-Encoding: chunked')}fffffff\r\n`,
    status: 429,
    on: 'denying',
  },
}

const portOf = (on: Port) => {
  if (on === 'admin') return Number(new URL(service.adminUrl).port)
  return on === 'denying' ? denying.port : service.port
}

describe.each(Object.entries(rejected))('%s', (_, { headers, status, on = 'service' }) => {
  test('gets its response immediately, and the connection closes during the body', async () => {
    const connection = await openConnection(portOf(on))
    connection.send(headers)
    connection.send(START)
    // A client whose write fails after the close does not read the response.
    const response = await connection.nextResponse()
    expect([response.status, headerOf(response, 'Connection')]).toEqual([status, 'close'])
    const sending = sendUntilClosed(connection, 64 * ACCEPTED_BYTES_MAX)
    expect(await withinDeadline('the close', sending)).toBeLessThan(ACCEPTED_BYTES_MAX)
  }, 30_000)

  test('gets its response, and the connection closes although no body arrives', async () => {
    const connection = await openConnection(portOf(on))
    connection.send(headers)
    expect((await connection.nextResponse()).status).toBe(status)
    await withinDeadline('the close', connection.closed, 5 * DISCARD_MS_MAX)
    connection.close()
  }, 30_000)

  test('gets its response instead of 100 Continue', async () => {
    const connection = await openConnection(portOf(on))
    connection.send(headers.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'))
    const response = await connection.nextResponse()
    expect([response.status, headerOf(response, 'Connection')]).toEqual([status, 'close'])
    connection.close()
  })
})

test('a body of endless chunks gets 413, and the connection closes', async () => {
  const connection = await openConnection(service.port)
  connection.send(headersTo('/v1/urls', json, 'Transfer-Encoding: chunked'))
  connection.send(`${START.length.toString(16)}\r\n${START.toString()}\r\nfffffff\r\n`)
  connection.send(START)
  expect((await connection.nextResponse()).status).toBe(413)
  const sending = sendUntilClosed(connection, 64 * ACCEPTED_BYTES_MAX)
  expect(await withinDeadline('the close', sending)).toBeLessThan(ACCEPTED_BYTES_MAX)
})

test('an expected body is requested with 100 Continue, and its connection stays open', async () => {
  const connection = await openConnection(service.port)
  const body = { long_url: 'https://example.com/' }
  const bytes = requestBytes(createLinkRequest(body, { Expect: '100-continue' }))
  const bodyAt = bytes.indexOf('\r\n\r\n') + 4
  connection.send(bytes.subarray(0, bodyAt))
  expect((await connection.nextResponse()).status).toBe(100)
  connection.send(bytes.subarray(bodyAt))
  expect((await connection.nextResponse()).status).toBe(201)
  expect((await connection.exchange({ path: '/robots.txt' })).status).toBe(200)
  connection.close()
})

test('a short unread body is discarded, and its connection stays open', async () => {
  const connection = await openConnection(service.port)
  const statuses: RawResponse['status'][] = []
  const unread = { method: 'POST', path: '/no/such', body: 'x'.repeat(9000) }
  for (const request of [unread, { path: '/' }]) {
    statuses.push((await connection.exchange(request)).status)
  }
  expect(statuses).toEqual([404, 200])
  connection.close()
})

test('the connection of a short body that does not arrive closes', async () => {
  const connection = await openConnection(service.port)
  connection.send(headersTo('/no/such', 'Content-Length: 10'))
  expect((await connection.nextResponse()).status).toBe(404)
  await withinDeadline('the close', connection.closed, 5 * DISCARD_MS_MAX)
  expect(connection.rest).toHaveLength(0)
  connection.close()
})
