// Redirects from memory against bare node:http that answers the same bytes, turn by turn, on one
// core.
import { createLinks } from './create-links.ts'
import { type Driven, type Load, prepareLoad } from './drive.ts'
import { startFloor } from './floor-process.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, medianOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.9
const CONNECTIONS = 64
/** Links that are followed in turn: few, so that nearly every look-up is answered from memory. */
const LINKS = 100
const WARM_UP_MS = 3000
const REQUESTS_MAX = 2_000_000

interface Span extends Driven {
  readonly cpuUs: number
}

interface Server {
  readonly name: string
  readonly pid: number
  readonly load: Omit<Load, 'msMax'>
  readonly spans: Span[]
}

/** Runs the benchmark. */
export async function benchRedirect(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const ours = await startLimited()
  const floor = startFloor('redirect-floor.ts')
  try {
    const codes = await createLinks({ port: ours.port, links: LINKS })
    const sample = await fetch(`${ours.baseUrl}/${codes[0] ?? ''}`, { redirect: 'manual' })
    const answer = {
      status: sample.status,
      headers: [...sample.headers].filter(([name]) => !ownHeaders.has(name)).flat(),
      body: await sample.text(),
    }
    const { port } = (await floor.ask(answer)) as { port: number }
    const requests = codes.map((code) =>
      Buffer.from(`GET /${code} HTTP/1.1\r\nHost: s.example\r\n\r\n`),
    )
    const servers = [
      { name: 'node:http', pid: floor.pid, load: loadOf(port, requests), spans: [] },
      { name: 'standalone', pid: ours.pid, load: loadOf(ours.port, requests), spans: [] },
    ] satisfies [Server, Server]
    await takeTurns(servers, options)
    return reportOf(servers, { ...conditions, connections: CONNECTIONS, links: LINKS })
  } finally {
    await floor.stop()
    await ours.stop()
  }
}

/** Headers that node:http adds to the floor's answers itself. */
const ownHeaders = new Set(['date', 'connection', 'keep-alive'])

function loadOf(port: number, requests: readonly Buffer[]): Server['load'] {
  let next = 0
  const request = () => {
    next = (next + 1) % requests.length
    return requests[next] ?? Buffer.alloc(0)
  }
  return {
    port,
    connections: CONNECTIONS,
    request,
    expectedStatuses: [302],
    requestsMax: REQUESTS_MAX,
  }
}

/** Each server in turn, the order reversed every time, so that a drift of the machine hits both. */
async function takeTurns(servers: readonly Server[], options: BenchOptions): Promise<void> {
  for (const server of servers) await measure(server, WARM_UP_MS)
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    const order = repetition % 2 === 0 ? servers : servers.toReversed()
    for (const server of order) {
      const span = await measure(server, options.seconds * 1000)
      server.spans.push(span)
      options.log(`${server.name}: ${cpuUsEach(span).toFixed(2)} CPU µs a request`)
    }
  }
}

async function measure({ pid, load }: Server, msMax: number): Promise<Span> {
  const driver = await prepareLoad({ ...load, msMax })
  const beforeUs = cpuUsOf(pid)
  const driven = await driver.run()
  return { ...driven, cpuUs: cpuUsOf(pid) - beforeUs }
}

function cpuUsEach({ cpuUs, answers }: Span): number {
  return cpuUs / answers
}

function reportOf(servers: readonly [Server, Server], conditions: Report['conditions']): Report {
  const [floor, ours] = servers
  const ratios = floor.spans.map((span, i) => {
    const other = ours.spans[i]
    return other === undefined ? Number.NaN : cpuUsEach(span) / cpuUsEach(other)
  })
  const ratio = medianOf(ratios)
  const median = (spans: readonly Span[], figure: (span: Span) => number) =>
    medianOf(spans.map(figure))
  return {
    bench: 'redirect',
    conditions,
    headings: ['server', 'CPU µs a request', 'requests a CPU-second', 'p50 ms', 'p99 ms'],
    rows: servers.map(({ name, spans }) => [
      name,
      median(spans, cpuUsEach).toFixed(2),
      (1e6 / median(spans, cpuUsEach)).toFixed(0),
      median(spans, ({ p50Ms }) => p50Ms).toFixed(2),
      median(spans, ({ p99Ms }) => p99Ms).toFixed(2),
    ]),
    verdict: [
      `Ratio of requests a CPU-second, standalone to node:http, median of ${ratios.length}: ` +
        `${ratio.toFixed(3)} (${ratios.map((each) => each.toFixed(2)).join(' ')}); ` +
        `goal at least ${GOAL}: ${ratio >= GOAL ? 'reached' : 'NOT reached'}`,
    ],
    figures: {
      ratio,
      ratios,
      goal: GOAL,
      servers: servers.map(({ name, spans }) => ({ name, spans })),
    },
  }
}
