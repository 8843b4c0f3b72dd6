// Traces of the standalone process, received by a collector in this test: only sampled requests
// export spans, and the SDK is loaded only if the setting is present.
import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findPrometheus, scrapeTarget, startPrometheus } from '../../dependencies/prometheus.ts'
import { createLinkRequest } from '../../kit/http/client.ts'
import { openConnection } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { watchPauses } from '../../kit/watch-pauses.ts'

const run = promisify(execFile)

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
/** Five times the deadline of the flush at a stop; the SDK alone would take 10 s. */
const FLUSH_MS_MAX = 5 * 1500
const WAIT_MS_MAX = 15_000
const FETCH_MS_MAX = 300_000

interface Export {
  readonly path: string
  readonly type: string
  readonly body: Buffer
}

let collector: Server
let endpoint: string
const exports: Export[] = []

beforeAll(async () => {
  await findPrometheus()
  collector = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const type = req.headers['content-type'] ?? ''
      if (req.url?.startsWith('/silent') === true) return // never responds
      exports.push({ path: req.url ?? '', type, body: Buffer.concat(chunks) })
      res.writeHead(200, { 'Content-Type': type }).end()
    })
  })
  await new Promise<void>((resolve) => collector.listen({ port: 0, host: '127.0.0.1' }, resolve))
  endpoint = `http://127.0.0.1:${String((collector.address() as { port: number }).port)}`
}, FETCH_MS_MAX)

afterAll(() => {
  collector.closeAllConnections()
  collector.close()
})

/** A trace id of 16 equal bytes, as hex. */
const traceOf = (byte: number) => byte.toString(16).padStart(2, '0').repeat(16)
/** Whether a span of this trace was exported: its id is bytes in protobuf and hex in JSON. */
const isExported = (trace: string) =>
  exports.some(({ body }) => body.includes(Buffer.from(trace, 'hex')) || body.includes(trace))

/** Sends a create and a lookup of /`name`, which is not found. */
async function sendBoth(service: Standalone, name: string, traceparent?: string) {
  const connection = await openConnection(service.port)
  const headers = traceparent === undefined ? {} : { traceparent }
  const created = createLinkRequest({ long_url: 'https://example.com/' }, headers)
  expect((await connection.exchange(created)).status).toBe(201)
  expect((await connection.exchange({ path: `/${name}`, headers })).status).toBe(404)
  connection.close()
}

test(
  'a sampled request exports a span of its trace; others export none',
  async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '100' }
    const service = await startStandalone({ env })
    const [sampled, unsampled, malformed] = [traceOf(0xa1), traceOf(0xb2), traceOf(0xc3)]
    const span = '1'.repeat(16)
    await sendBoth(service, 'unsampled', `00-${unsampled}-${span}-00`)
    await sendBoth(service, 'alone')
    await sendBoth(service, 'nonsense', 'nonsense')
    await sendBoth(service, 'malformed', `00-${malformed}-${span}`)
    await sendBoth(service, 'sampled', `00-${sampled}-${span}-01`)
    // The stop flushes the recorded spans.
    await service.stop()
    const spans = exports.filter(({ path }) => path === '/v1/traces')
    expect(spans.length).toBeGreaterThan(0)
    expect(isExported(sampled)).toBe(true)
    expect([isExported(unsampled), isExported(malformed)]).toEqual([false, false])
    const text = spans.map(({ body }) => body.toString('latin1')).join('')
    expect(text).toContain('curtail')
    expect(text).toContain('/sampled')
    for (const name of ['/unsampled', '/alone', '/nonsense', '/malformed']) {
      expect(text).not.toContain(name)
    }
    // Two sampled requests, two spans: background work exports none.
    expect(text.split(Buffer.from(sampled, 'hex').toString('latin1')).length - 1).toBe(2)
    expect(service.log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'Prometheus scrapes the trace ids of sampled requests as exemplars of the histograms',
  async () => {
    const service = await startStandalone({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } })
    const target = { address: new URL(service.adminUrl).host, path: '/metrics', labels: {} }
    const scrapes = [scrapeTarget(target)]
    const prometheus = await startPrometheus({ scrapes }).catch(async (error: unknown) => {
      await service.stop()
      throw error
    })
    try {
      const [sampled, unsampled] = [traceOf(0xe5), traceOf(0xf6)]
      await sendBoth(service, 'unknown', `00-${sampled}-${'1'.repeat(16)}-01`)
      await sendBoth(service, 'unknown', `00-${unsampled}-${'1'.repeat(16)}-00`)
      const seconds = 'curtail_http_request_duration_seconds'
      for (const labels of ['{route="code",status="404"}', '{route="urls",status="201"}']) {
        const areBothCounted = async () => {
          const [count] = await prometheus.query(`${seconds}_count${labels}`)
          return count?.value[1] === '2'
        }
        await waitFor(`both requests of ${labels}`, areBothCounted, WAIT_MS_MAX)
        const exemplars = await prometheus.exemplars(`${seconds}_bucket${labels}`)
        expect(exemplars.map((one) => one.labels)).toEqual([{ trace_id: sampled }])
      }
      for (const name of ['curtail_creates_total', 'process_cpu_seconds_total']) {
        expect([name, await prometheus.query(name)]).toEqual([name, [expect.anything()]])
      }
    } finally {
      await prometheus.stop()
      await service.stop()
    }
  },
  TEST_MS_MAX,
)

test('a log line within a span has its trace id, and other lines have none', async () => {
  const place = (name: string) =>
    JSON.stringify(new URL(`../../../src/telemetry/${name}`, import.meta.url))
  const script = `
    import { installSpans } from ${place('spans.ts')}
    import { createLog } from ${place('log.ts')}
    let ids = { trace_id: 'a', span_id: 'b' }
    installSpans({ currentIds: () => ids })
    const log = createLog({ role: 'test', level: 'info' })
    log.info('within')
    ids = undefined
    log.info('outside')`
  const args = ['--input-type=module', '--eval', script]
  const { stdout } = await run(process.execPath, args, { timeout: TEST_MS_MAX })
  const lines = stdout.trim().split('\n')
  const [within, outside] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(within).toMatchObject({ msg: 'within', trace_id: 'a', span_id: 'b' })
  expect(Object.keys(outside ?? {})).toEqual(['level', 'time', 'role', 'msg'])
})

test(
  'a process with an unavailable collector soon stops and prints one line',
  async () => {
    for (const unavailable of ['http://127.0.0.1:1', `${endpoint}/silent`]) {
      let printed = ''
      const service = await startStandalone({
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: unavailable },
        onSpawn: ({ stderr }) => stderr?.on('data', (chunk: Buffer) => (printed += String(chunk))),
      })
      await sendBoth(service, 'unknown', `00-${traceOf(0xd4)}-${'1'.repeat(16)}-01`)
      const pauses = watchPauses()
      await service.stop()
      pauses.stop()
      const stopped = service.log.find(({ msg }) => msg === 'stopped')
      const flushMs = Date.now() - Date.parse(String(stopped?.['time']))
      expect(flushMs).toBeLessThan(FLUSH_MS_MAX + pauses.longestMs())
      expect(await service.exited).toBe(0)
      expect(printed).toMatch(/^curtail: the last spans are lost: [^\n]+\n$/)
    }
  },
  TEST_MS_MAX,
)

/** The packages that a process loads, with the number of loads, by Node's debug output. */
async function packagesOf(env: Record<string, string>): Promise<Map<string, number>> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-loaded-'))
  const file = join(folder, 'stderr')
  const service = await startStandalone({
    dataDir: folder,
    env: { ...env, NODE_DEBUG: 'esm,module' },
    // A file, because a process that exits drops what a pipe has not accepted yet of its 19 MB.
    wrapper: ['sh', '-c', `exec "$0" "$@" 2>'${file}'`],
  })
  await service.stop()
  const printed = await readFile(file, 'utf8')
  await rm(folder, { recursive: true })
  const counts = new Map<string, number>()
  const loads = /(?:Translating \w+ file:\/\/|load ")\S*node_modules\/((?:@[\w-]+\/)?[\w-]+)\//g
  for (const [, name = ''] of printed.matchAll(loads)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

test(
  'a process loads OpenTelemetry only with the setting',
  async () => {
    const isOfTracing = (name: string) => /opentelemetry\/(?!api$)|import-in-the-middle/.test(name)
    const off = await packagesOf({})
    expect([...off.keys()]).toContain('express')
    expect([...off.keys()].filter(isOfTracing)).toEqual([])
    const on = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
    expect([...(await packagesOf(on)).keys()]).toContain('@opentelemetry/sdk-node')
    const disabled = await packagesOf({ ...on, OTEL_SDK_DISABLED: 'true' })
    expect([...disabled.keys()].filter(isOfTracing)).toEqual([])
  },
  TEST_MS_MAX + START_MS_MAX,
)
