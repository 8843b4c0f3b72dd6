// Slow or silent clients against the standalone process: disconnected at the deadline, with 408 if
// there is a request, while others are served; an idle connection stays open. All wait
// concurrently.
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

const START_MS_MAX = 30_000
/** Of serve.ts: headers are complete within 10 s of their first byte, a request within 20 s. */
const HEADERS_MS_MAX = 10_000
const REQUEST_MS_MAX = 20_000
const SLACK_MS = 15_000
const TRICKLE_MS = 500
const link = { long_url: 'https://example.com/', custom_alias: 'there' }

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

interface CutOff {
  readonly answer: RawResponse
  readonly tookMs: number
}

/** Sends `begin`, then `drip` again and again, until it is answered and cut off. */
async function cutOff(begin: string, drip?: string): Promise<CutOff> {
  const connection = await openConnection(service.port)
  const begunMs = performance.now()
  connection.send(begin)
  const dripping = setInterval(() => {
    if (drip !== undefined) connection.send(drip)
  }, TRICKLE_MS)
  try {
    const answer = await connection.nextResponse({ msMax: REQUEST_MS_MAX + SLACK_MS })
    const tookMs = performance.now() - begunMs
    await withinDeadline('the end of the connection', connection.closed)
    return { answer, tookMs }
  } finally {
    clearInterval(dripping)
    connection.close()
  }
}

const post = requestBytes({ ...createLinkRequest(link), body: Buffer.alloc(0) })
  .toString()
  .replace('Content-Length: 0\r\n', '')
  .slice(0, -2)

const slow: Record<string, { begin: string; drip?: string; msMax: number }> = {
  'headers that trickle': {
    begin: 'GET /there HTTP/1.1\r\nHost: x\r\n',
    drip: 'X-Drip: 1\r\n',
    msMax: HEADERS_MS_MAX,
  },
  'headers that stop': { begin: 'GET /there HTTP/1.1\r\nHo', msMax: HEADERS_MS_MAX },
  'a first byte alone': { begin: 'G', msMax: HEADERS_MS_MAX },
  'a body that trickles': {
    begin: `${post}Content-Length: 1000\r\n\r\n{`,
    drip: ' ',
    msMax: REQUEST_MS_MAX,
  },
  'a body that stops': { begin: `${post}Content-Length: 1000\r\n\r\n{`, msMax: REQUEST_MS_MAX },
  'chunks that trickle': {
    begin: `${post}Transfer-Encoding: chunked\r\n\r\n`,
    drip: '1\r\n \r\n',
    msMax: REQUEST_MS_MAX,
  },
}

describe('while slow clients time out', () => {
  const cuts = new Map<string, Promise<CutOff>>()
  let quiet: Promise<RawResponse>
  let after413: Promise<unknown>
  let isOver = false
  let served: Promise<number[]>

  beforeAll(() => {
    for (const [name, { begin, drip }] of Object.entries(slow)) {
      const cut = cutOff(begin, drip)
      cut.catch(() => undefined) // its own test tells of it
      cuts.set(name, cut)
    }
    quiet = idleThenAsk()
    quiet.catch(() => undefined)
    after413 = endlessBody()
    after413.catch(() => undefined)
    served = others(() => isOver)
  })

  test.each(Object.entries(slow))(
    '%s: 408 and a close',
    async (name, { msMax }) => {
      const cut = await cuts.get(name)
      if (cut === undefined) throw new Error('it was not begun')
      expect(cut.answer.status).toBe(408)
      expect(headerOf(cut.answer, 'Connection')).toBe('close')
      expect(headerOf(cut.answer, 'Content-Type')).toBe('application/problem+json')
      expect(headerOf(cut.answer, 'X-Request-Id')).toBe(jsonOf(cut.answer)['request_id'])
      expect(jsonOf(cut.answer)['type']).toBe(`${service.linkBase}/problems/request-timeout`)
      expect(cut.tookMs).toBeGreaterThan(msMax - 1000)
      const isHead = msMax < REQUEST_MS_MAX
      expect(cut.tookMs).toBeLessThan(isHead ? REQUEST_MS_MAX : REQUEST_MS_MAX + SLACK_MS)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test(
    'a rejected endless body: its connection closes',
    async () => {
      await withinDeadline('the end of the connection', after413, REQUEST_MS_MAX + SLACK_MS)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test(
    'an idle connection outlives the deadline of headers, and is served',
    async () => {
      expect((await quiet).status).toBe(302)
    },
    REQUEST_MS_MAX + 2 * SLACK_MS,
  )

  test('all other clients were served meanwhile', async () => {
    isOver = true
    const tookMs = await served
    expect(tookMs.length).toBeGreaterThan(50)
    // A deadline of the test's own: no request waited for the slow ones.
    expect(Math.max(...tookMs)).toBeLessThan(5000)
  }, 10_000)
})

/** One request, silence for longer than a head may take, and another request. */
async function idleThenAsk(): Promise<RawResponse> {
  const connection = await openConnection(service.port)
  expect((await connection.exchange({ path: '/there' })).status).toBe(302)
  await new Promise((resolve) => setTimeout(resolve, HEADERS_MS_MAX + 5000))
  const answer = await connection.exchange({ path: '/there' })
  connection.close()
  return answer
}

/** A body without end: 413 at once, and the connection may not be used for ever. */
async function endlessBody(): Promise<void> {
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

/** Follows a link ten times a second on new connections; how long each took. */
async function others(isOver: () => boolean): Promise<number[]> {
  const tookMs: number[] = []
  while (!isOver()) {
    const begunMs = performance.now()
    const connection = await openConnection(service.port)
    expect((await connection.exchange({ path: '/there' })).status).toBe(302)
    connection.close()
    tookMs.push(performance.now() - begunMs)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return tookMs
}

test('half-open and reset connections are cleaned up', async () => {
  for (const bytes of ['', 'GET /there HTTP/1.1\r\n', `${post}Content-Length: 10\r\n\r\n{`]) {
    const reset = await openConnection(service.port)
    reset.send(bytes)
    reset.socket.resetAndDestroy()
    // The client sends nothing more, but still listens.
    const halfOpen = await openConnection(service.port)
    halfOpen.send(bytes)
    halfOpen.socket.end()
    await withinDeadline('the end of a half-open connection', halfOpen.closed)
    halfOpen.close()
  }
  const whole = await openConnection(service.port)
  whole.send(requestBytes({ path: '/there' }))
  whole.socket.end()
  expect((await whole.nextResponse()).status).toBe(302)
  await withinDeadline('the end of the connection', whole.closed)
  whole.close()
  expect(service.child.exitCode).toBeNull()
  expect(service.log.filter(({ level }) => level === 'error')).toEqual([])
}, 30_000)
