// The cost of tracing for redirects that are not sampled: the same process with and without an OTLP
// endpoint, in turns on one core. Every request has a `traceparent` with the sampled flag 0, like
// those of the edge.
import { fileURLToPath } from 'node:url'
import { type Standalone, startStandalone } from '../../test/kit/processes/standalone.ts'
import { compare } from './compare.ts'
import { createLinks } from './create-links.ts'
import { redirectLoad } from './redirect-load.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

/** At most 5 % of the CPU time. */
const GOAL = 0.95
const LINKS = 100
/** A closed port: without sampled spans the process does not connect to it. */
const CLOSED_ENDPOINT = 'http://127.0.0.1:9'
const rules = fileURLToPath(new URL('limits.yaml', import.meta.url))
const traceparent = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-00`

/** Runs the benchmark. */
export async function benchTracing(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const started: Standalone[] = []
  const start = async (env: Readonly<Record<string, string>>) => {
    const own = { RATE_LIMITS: rules, ...env }
    const service = await startStandalone({ wrapper: onServerCore, env: own })
    started.push(service)
    const codes = await createLinks({ port: service.port, links: LINKS })
    return { pid: service.pid, load: unsampledLoad(service.port, codes) }
  }
  try {
    const off = await start({})
    const on = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: CLOSED_ENDPOINT })
    return await compare({
      bench: 'tracing',
      goal: GOAL,
      floor: { name: 'tracing off', ...off },
      ours: { name: 'tracing on, unsampled', ...on },
      options,
      conditions: { ...conditions, links: LINKS },
    })
  } finally {
    for (const service of started) await service.stop()
  }
}

function unsampledLoad(port: number, codes: readonly string[]): ReturnType<typeof redirectLoad> {
  const headers = `HTTP/1.1\r\nHost: s.example\r\ntraceparent: ${traceparent}\r\n\r\n`
  const requests = codes.map((code) => Buffer.from(`GET /${code} ${headers}`))
  let next = 0
  const request = () => {
    next = (next + 1) % requests.length
    return requests[next] ?? Buffer.alloc(0)
  }
  return { ...redirectLoad(port, codes), request }
}
