// h2spec, the independent conformance suite for HTTP/2 servers, against the gRPC listener, and
// against its HTTP/2 implementation with a service that responds to every complete request.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { parseCallHeaders } from '../../../src/grpc/call-headers.ts'
import type { CallStream } from '../../../src/grpc/http2/call-stream.ts'
import { Http2Connection } from '../../../src/grpc/http2/connection.ts'
import { ProcessBounds } from '../../../src/grpc/http2/process-bounds.ts'
import { RoundRobinScheduler } from '../../../src/grpc/http2/round-robin-scheduler.ts'
import { errorCodes } from '../../../src/grpc/http2/frames.ts'
import type { HeaderField } from '../../../src/grpc/http2/hpack-decoder.ts'
import { runHttp2Tool } from '../../dependencies/http2-tools.ts'
import { startTestServer } from '../../kit/ratelimit/grpc-client.ts'

const RUN_MS_MAX = 100_000
const CASES = 146
const defects: unknown[] = []
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0)) await cleanUp()
})

/** The reason why a case may fail, by its number, as in `h2spec NUMBER`. */
type Deviations = Readonly<Record<string, string>>

const priorities: Deviations = {
  'http2/5.3.1/1': 'a stream depends on itself: RFC 9113 5.3.2 has no dependencies',
  'http2/5.3.1/2': 'a stream depends on itself: RFC 9113 5.3.2 has no dependencies',
}
const early = 'a request that is not gRPC gets 415 after its headers, so its stream is closed'
const noData = 'the case requires a response with a body, and 415 has none'
const deviations: Readonly<Record<string, Deviations>> = {
  'complete requests': priorities,
  'the listener': {
    ...priorities,
    'generic/2/2': noData,
    'generic/2/3': noData,
    'http2/5.1.2/1': early,
    'http2/6.5.3/1': noData,
    'http2/6.9.1/1': noData,
    'http2/6.9.1/3': early,
    'http2/6.9.2/1': noData,
    'http2/6.9.2/2': noData,
    'http2/8.1.2.6/1': early,
    'http2/8.1.2.6/2': early,
  },
}

/** Responds to requests that are complete and not malformed. */
function respondWhenComplete(stream: CallStream, fields: readonly HeaderField[] | undefined): void {
  const headers = parseCallHeaders(fields)
  if ('kind' in headers && headers.kind === 'malformed') {
    stream.reset(errorCodes.protocol)
    stream.handlerDone()
    return
  }
  stream.listener = {
    receive(_, isLast) {
      if (isLast) stream.respond(Buffer.from('hello'))
    },
    closed() {
      stream.handlerDone()
    },
  }
}

async function serveComplete(): Promise<number> {
  const connections = new Set<Http2Connection>()
  const nowMs = () => performance.now()
  const bounds = new ProcessBounds(() => undefined)
  const scheduler = new RoundRobinScheduler(nowMs)
  const server = createServer((socket) => {
    const share = bounds.open('127.0.0.1', () => undefined)
    if (share === undefined) throw new Error('Cannot open a connection: the bounds reject it')
    const connection: Http2Connection = new Http2Connection(socket, {
      startCall: respondWhenComplete,
      ...{ nowMs, scheduler, budgets: share.budgets, address: '127.0.0.1' },
      onDefect: (error) => defects.push(error),
      onClose: () => {
        share.close()
        connections.delete(connection)
      },
    })
    connections.add(connection)
  })
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  cleanups.push(() => {
    server.close()
    for (const connection of connections) connection.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function serveCalls(): Promise<number> {
  const server = await startTestServer({}, { closeMsMax: 0 })
  cleanups.push(() => server.close())
  return server.port
}

/** The result of each case, by its number. */
async function runH2spec(port: number): Promise<ReadonlyMap<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-h2spec-'))
  try {
    const report = join(folder, 'report.xml')
    const args = ['-h', '127.0.0.1', '-p', String(port), '--strict', '-j', report]
    const { stdout, stderr } = await runHttp2Tool('h2spec', args, RUN_MS_MAX)
    const xml = await readFile(report, 'utf8').catch(() => {
      throw new Error(`h2spec wrote no report: ${stdout.slice(-2000)} ${stderr}`)
    })
    const form = /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs
    const counts = new Map<string, number>()
    const cases = [...xml.matchAll(form)].map(([, section = '', title = '', body = '']) => {
      const number = (counts.get(section) ?? 0) + 1
      counts.set(section, number)
      const failure = body.includes('<skipped') ? 'skipped' : body.trim()
      const result = failure === '' ? 'passed' : `${title}: ${failure}`
      return [`${section}/${String(number)}`, result] as const
    })
    return new Map(cases)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test.each([
  ['complete requests', serveComplete],
  ['the listener', serveCalls],
])(
  'every case passes on %s, except the documented deviations',
  async (name, serve) => {
    const results = await runH2spec(await serve())
    const failed = [...results].filter(([, result]) => result !== 'passed')
    const documented = deviations[name] ?? {}
    expect(failed.filter(([number]) => documented[number] === undefined)).toEqual([])
    // A deviation that passes must be removed from the list.
    expect(failed.map(([number]) => number).sort()).toEqual(Object.keys(documented).sort())
    expect(results.size).toBe(CASES)
    expect(defects).toEqual([])
  },
  RUN_MS_MAX,
)
