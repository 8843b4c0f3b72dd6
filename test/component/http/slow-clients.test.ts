// Slow clients of the standalone process, all concurrently: each is disconnected at the deadline of
// its request, with 408; an idle connection stays open, and other clients are served.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import {
  type RawResponse,
  headerOf,
  jsonOf,
  openConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { createLinkRequest } from '../../kit/http/client.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
/** The timeouts of serve.ts, from the first byte: 10 s for the headers, 20 s for the request. */
const HEADERS_MS_MAX = 10_000
const REQUEST_MS_MAX = 20_000
const SLACK_MS = 15_000
const TRICKLE_MS = 500
const link = { long_url: 'https://example.com/', custom_alias: 'found' }

let service: Standalone

beforeAll(async () => {
  service = await startStandalone()
  const connection = await openConnection(service.port)
  expect((await connection.exchange(createLinkRequest(link))).status).toBe(201)
  connection.close()
}, START_MS_MAX)

afterAll(async () => {
  await service.stop()
}, START_MS_MAX)

interface TimedOut {
  readonly response: RawResponse
  readonly tookMs: number
}

/** Sends `first`, then `drip` periodically, until the server responds and closes the connection. */
async function sendSlowly(first: string, drip?: string): Promise<TimedOut> {
  const connection = await openConnection(service.port)
  const startedMs = performance.now()
  connection.send(first)
  const dripping = setInterval(() => {
    if (drip !== undefined) connection.send(drip)
  }, TRICKLE_MS)
  try {
    const response = await connection.nextResponse({ msMax: REQUEST_MS_MAX + SLACK_MS })
    const tookMs = performance.now() - startedMs
    await withinDeadline('the close', connection.closed)
    return { response, tookMs }
  } finally {
    clearInterval(dripping)
    connection.close()
  }
}

const post = requestBytes({ ...createLinkRequest(link), body: Buffer.alloc(0) })
  .toString()
  .replace('Content-Length: 0\r\n', '')
  .slice(0, -2)

const slow: Record<string, { first: string; drip?: string; msMax: number }> = {
  'headers that trickle': {
    first: 'GET /found HTTP/1.1\r\nHost: x\r\n',
    drip: 'X-Drip: 1\r\n',
    msMax: HEADERS_MS_MAX,
  },
  'headers that stop': { first: 'GET /found HTTP/1.1\r\nHo', msMax: HEADERS_MS_MAX },
  'a first byte alone': { first: 'G', msMax: HEADERS_MS_MAX },
  'a body that trickles': {
    first: `${post}Content-Length: 1000\r\n\r\n{`,
    drip: ' ',
    msMax: REQUEST_MS_MAX,
  },
  'a body that stops': { first: `${post}Content-Length: 1000\r\n\r\n{`, msMax: REQUEST_MS_MAX },
  'chunks that trickle': {
    first: `${post}Transfer-Encoding: chunked\r\n\r\n`,
    drip: '1\r\n \r\n',
    msMax: REQUEST_MS_MAX,
  },
}

describe('a slow client', () => {
  const timedOut = new Map<string, Promise<TimedOut>>()
  let afterIdle: Promise<RawResponse>
  let after413: Promise<unknown>
  let isDone = false
  let polling: Promise<number[]>

  beforeAll(() => {
    for (const [name, { first, drip }] of Object.entries(slow)) {
      const sending = sendSlowly(first, drip)
      sending.catch(() => undefined) // reported by its own test
      timedOut.set(name, sending)
    }
    afterIdle = requestAfterIdle()
    afterIdle.catch(() => undefined)
    after413 = sendEndlessBody()
    after413.catch(() => undefined)
    polling = pollLink(() => isDone)
  })

  test.each(Object.entries(slow))(
    'gets 408, and its connection closes: %s',
    async (name, { msMax }) => {
      const result = await timedOut.get(name)
      if (result === undefined) throw new Error('the client was not started')
      const { response, tookMs } = result
      expect(response.status).toBe(408)
      expect(headerOf(response, 'Connection')).toBe('close')
      expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
      expect(headerOf(response, 'X-Request-Id')).toBe(jsonOf(response)['request_id'])
      expect(jsonOf(response)['type']).toBe(`${service.linkBase}/problems/request-timeout`)
      expect(tookMs).toBeGreaterThan(msMax - 1000)
      const isHeaderTimeout = msMax < REQUEST_MS_MAX
      expect(tookMs).toBeLessThan(isHeaderTimeout ? REQUEST_MS_MAX : REQUEST_MS_MAX + SLACK_MS)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test(
    'is disconnected after its 413 if its body is endless',
    async () => {
      await withinDeadline('the close', after413, REQUEST_MS_MAX + SLACK_MS)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test(
    'may idle between two requests for longer than the header timeout',
    async () => {
      expect((await afterIdle).status).toBe(302)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test('delays no other client', async () => {
    isDone = true
    const tookMs = await polling
    expect(tookMs.length).toBeGreaterThan(50)
    // A deadline of this test: no request waited for a slow client.
    expect(Math.max(...tookMs)).toBeLessThan(5000)
  }, 10_000)
})

/** Sends a request, idles for longer than the header timeout, and sends another request. */
async function requestAfterIdle(): Promise<RawResponse> {
  const connection = await openConnection(service.port)
  expect((await connection.exchange({ path: '/found' })).status).toBe(302)
  await new Promise((resolve) => setTimeout(resolve, HEADERS_MS_MAX + 5000))
  const response = await connection.exchange({ path: '/found' })
  connection.close()
  return response
}

/** Sends an endless body; resolves once the server has sent 413 and closed the connection. */
async function sendEndlessBody(): Promise<void> {
  const connection = await openConnection(service.port)
  connection.send(`${post}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = `400\r\n${' '.repeat(0x400)}\r\n`
  const dripping = setInterval(() => {
    connection.send(chunk)
  }, 20)
  try {
    expect((await connection.nextResponse()).status).toBe(413)
    await connection.closed
  } finally {
    clearInterval(dripping)
    connection.close()
  }
}

/** Resolves a code ten times a second, each time on a new connection; returns the durations. */
async function pollLink(isDone: () => boolean): Promise<number[]> {
  const tookMs: number[] = []
  while (!isDone()) {
    const startedMs = performance.now()
    const connection = await openConnection(service.port)
    expect((await connection.exchange({ path: '/found' })).status).toBe(302)
    connection.close()
    tookMs.push(performance.now() - startedMs)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return tookMs
}

test('the process closes half-open and reset connections, and continues', async () => {
  for (const bytes of ['', 'GET /found HTTP/1.1\r\n', `${post}Content-Length: 10\r\n\r\n{`]) {
    const reset = await openConnection(service.port)
    reset.send(bytes)
    reset.socket.resetAndDestroy()
    // The client stops sending, but still reads.
    const halfOpen = await openConnection(service.port)
    halfOpen.send(bytes)
    halfOpen.socket.end()
    await withinDeadline('the close of a half-open connection', halfOpen.closed)
    halfOpen.close()
  }
  for (const rest of ['\r\n', 'Content-Length: 5\r\n\r\n', '\r\nGET /found HTTP/1.1\r\n\r\n']) {
    const bytes = `CONNECT a:1 HTTP/1.1\r\nHost: a\r\n${rest}`
    const immediate = await openConnection(service.port)
    immediate.send(bytes)
    immediate.socket.resetAndDestroy()
    const rejected = await openConnection(service.port)
    rejected.send(bytes)
    expect((await rejected.nextResponse()).status).toBe(400)
    rejected.socket.resetAndDestroy()
  }
  const whole = await openConnection(service.port)
  whole.send(requestBytes({ path: '/found' }))
  whole.socket.end()
  expect((await whole.nextResponse()).status).toBe(302)
  await withinDeadline('the close', whole.closed)
  whole.close()
  expect(service.child.exitCode).toBeNull()
  expect(service.log.filter(({ level }) => level === 'error')).toEqual([])
}, 30_000)
