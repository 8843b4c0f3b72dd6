// Exports from an HTTP server that fails in each way: no link is lost or repeated, a slow reader
// stops the export, and the error of a failed export contains the code that continues it.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import { waitFor, withinDeadline } from '../../test/kit/wait-for.ts'
import { type ExportOptions, exportLinks } from './export-links.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** The codes of the server, in its order, which is not the order of the alphabet. */
const codes = Array.from({ length: 1200 }, (_, i) => `${String((i * 7) % 10)}-${String(i)}`)

const linkOf = (code: string) => ({
  short_code: code,
  long_url: code.endsWith('5') ? null : `https://example.com/${code}\u2028"`,
  created_at: '2026-01-02T03:04:05.678Z',
  expires_at: null,
  creator_id: '9223372036854775807',
  state: code.endsWith('5') ? 'deleted' : 'active',
  added_later: [1],
})

const lineOf = (code: string) => `${JSON.stringify(linkOf(code))}\n`
const linesOf = (some: readonly string[]) => some.map(lineOf).join('')

/** What the server does to a request instead of sending a page. */
type Fault = (res: ServerResponse) => unknown

/** Starts a server that records the queries of its requests. */
async function startServer(faultOf: (ordinal: number) => Fault | undefined = () => undefined) {
  const queries: string[] = []
  const server = createServer((req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://localhost')
    const [after, limit] = [searchParams.get('after'), Number(searchParams.get('limit'))]
    queries.push(`${after ?? ''} ${limit}`)
    const fault = faultOf(queries.length - 1)
    if (fault !== undefined) {
      fault(res)
      return
    }
    const first = after === null ? 0 : codes.indexOf(after) + 1
    const page = codes.slice(first, first + limit)
    const next = page.length < limit ? null : page.at(-1)
    res.end(JSON.stringify({ links: page.map(linkOf), next }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  cleanUps.push(stop)
  return { queries, stop, url: `http://127.0.0.1:${String(port)}` }
}

/** Starts an export with this output, without waiting between its pages. */
function start(url: string, given: Partial<ExportOptions> = {}) {
  const written: string[] = []
  const output = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  const pauses: number[] = []
  const retries: string[] = []
  const exported = exportLinks({
    target: { url, token: undefined },
    output,
    after: undefined,
    linksPerSecond: 1_000_000,
    signal: new AbortController().signal,
    onPage: () => undefined,
    onRetry: (cause) => retries.push(cause.message),
    pause(ms) {
      pauses.push(ms)
      return Promise.resolve()
    },
    ...given,
  })
  return { exported, pauses, retries, result: () => written.join('') }
}

const unavailable: Fault = (res) => res.writeHead(503).end(JSON.stringify({ detail: 'no store' }))
const lostConnection: Fault = (res) => res.destroy()
const cutBody: Fault = (res) => {
  res.writeHead(200, { 'Content-Length': '1000' })
  res.write('{"links":[', () => res.destroy())
}

test('every link is one line in the format of the API, including unknown members', async () => {
  const { url, queries } = await startServer()
  const run = start(url)
  expect(await run.exported).toBe(1200)
  expect(run.result()).toBe(linesOf(codes))
  expect(queries).toEqual([' 500', `${codes[499]} 500`, `${codes[999]} 500`])
})

test('an export continues after a code', async () => {
  const { url } = await startServer()
  const run = start(url, { after: codes[299] })
  expect(await run.exported).toBe(900)
  expect(run.result()).toBe(linesOf(codes.slice(300)))
})

test.each([
  [10, '1', 1200],
  [95, '10', 120],
])('at %i links per second, pages of %s links are evenly spread', async (rate, limit, pages) => {
  const { url, queries } = await startServer()
  const run = start(url, { linksPerSecond: rate })
  expect(await run.exported).toBe(1200)
  expect(new Set(queries.map((query) => query.split(' ')[1]))).toEqual(new Set([limit]))
  const pageMs = (Number(limit) / rate) * 1000
  expect(run.pauses).toHaveLength(pages)
  expect(Math.max(...run.pauses)).toBeLessThanOrEqual(pageMs)
  expect(Math.max(...run.pauses)).toBeGreaterThan(pageMs / 2)
})

test.each([
  ['a 503', unavailable],
  ['a lost connection', lostConnection],
  ['a response that is cut', cutBody],
])('after %s, smaller pages are requested, and no link is lost or repeated', async (_, fault) => {
  const { url, queries } = await startServer((ordinal) =>
    ordinal === 1 || ordinal === 2 ? fault : undefined,
  )
  const run = start(url)
  expect(await run.exported).toBe(1200)
  expect(run.result()).toBe(linesOf(codes))
  expect(run.retries).toHaveLength(2)
  expect(queries.slice(0, 5)).toEqual([
    ' 500',
    `${codes[499]} 500`,
    `${codes[499]} 250`,
    `${codes[499]} 125`,
    `${codes[624]} 250`,
  ])
})

test('a page is tried 10 times, with growing pauses; the error contains the code', async () => {
  const { url } = await startServer((ordinal) => (ordinal < 1 ? undefined : unavailable))
  const run = start(url)
  await expect(run.exported).rejects.toThrow(
    new RegExp(
      `^export stopped after 500 links: GET /admin/links\\?after=${codes[499]}&limit=1 ` +
        `returned 503: no store; continue with --after=${codes[499]}$`,
    ),
  )
  expect(run.result()).toBe(linesOf(codes.slice(0, 500)))
  const [, ...retryPauses] = run.pauses
  expect(retryPauses).toHaveLength(9)
  expect(Math.max(...retryPauses.slice(0, 2))).toBeLessThanOrEqual(500)
  expect(Math.min(...retryPauses.slice(-3))).toBeGreaterThanOrEqual(4000)
})

test('a page that takes longer than its timeout is retried with half as many links', async () => {
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  const delays = jest.spyOn(AbortSignal, 'timeout')
  delays.mockImplementation((ms) => timeout(delays.mock.calls.length === 2 ? 200 : ms))
  const { url, queries } = await startServer((i) => (i === 1 ? () => undefined : undefined))
  const run = start(url)
  expect(await run.exported).toBe(1200)
  expect(run.retries).toEqual([`the admin API at ${url} did not respond within 20 s`])
  expect(queries.slice(0, 3)).toEqual([' 500', `${codes[499]} 500`, `${codes[499]} 250`])
  expect(new Set(delays.mock.calls.flat())).toEqual(new Set([20_000]))
  delays.mockRestore()
})

test('an API that was never reached is reported immediately', async () => {
  const server = await startServer()
  server.stop()
  const run = start(server.url)
  await expect(run.exported).rejects.toThrow(/^cannot reach the admin API .* check ADMIN_URL$/)
  expect(run.retries).toEqual([])
})

test('an error that a retry does not change is reported immediately', async () => {
  const rejected: Fault = (res) => res.writeHead(401).end(JSON.stringify({ detail: 'no token' }))
  const { url } = await startServer((ordinal) => (ordinal < 2 ? undefined : rejected))
  const run = start(url)
  await expect(run.exported).rejects.toThrow(
    `returned 401: no token; continue with --after=${codes[999]}`,
  )
  expect(run.retries).toEqual([])
})

/** An output whose reader accepts a page when the test calls the next function in `accept`. */
function slowOutput() {
  const accept: ((error?: Error) => void)[] = []
  const output = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      accept.push(done)
    },
  })
  output.on('error', () => undefined)
  return { output, accept }
}

test('the next page is requested when the reader has accepted the previous one', async () => {
  const { url, queries } = await startServer()
  const { output, accept } = slowOutput()
  const run = start(url, { output })
  for (const page of [1, 2, 3]) {
    await waitFor('a page', () => accept.length === page)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(queries).toHaveLength(page)
    accept[page - 1]?.()
  }
  expect(await run.exported).toBe(1200)
})

test('the error of an output that fails contains how to continue', async () => {
  const { url } = await startServer()
  const { output, accept } = slowOutput()
  const run = start(url, { output })
  await waitFor('a page', () => accept.length === 1)
  accept[0]?.()
  await waitFor('a page', () => accept.length === 2)
  accept[1]?.(new Error('EPIPE'))
  await expect(run.exported).rejects.toThrow(
    'export stopped after 500 links: cannot write the output (EPIPE); ' +
      'continue with --after=CODE, the short_code of the last complete line',
  )
})

test.each(['reader', 'API'])('a signal stops an export whose %s does not respond', async (hung) => {
  const { url, queries } = await startServer((ordinal) =>
    ordinal === 0 || hung === 'reader' ? undefined : () => undefined,
  )
  const { output, accept } = slowOutput()
  const stopping = new AbortController()
  const run = start(url, { output, signal: stopping.signal })
  await waitFor('a page', () => accept.length === 1)
  accept[0]?.()
  await waitFor('the next page', () => (hung === 'reader' ? accept : queries).length === 2)
  stopping.abort()
  const from = hung === 'reader' ? 'CODE, the short_code of the last complete line' : codes[499]
  await expect(withinDeadline('the stop', run.exported)).rejects.toThrow(
    `export stopped after 500 links: a signal was received; continue with --after=${from}`,
  )
})
