// The dependency `collector`: the OpenTelemetry Collector, which no registry ships as a program and
// Go builds once from its published modules, pinned by test/dependencies/collector/go.sum. It forwards
// the spans that it receives to the test that started it, which reads them as trees.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitFor } from '../kit/wait-for.ts'
import { canConnect } from './can-connect.ts'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'
import { type ReceivedSpan, readSpans } from '../kit/received-spans.ts'
import { freePort } from './free-ports.ts'

const VERSION = '0.160.0'
const BUILD_MS_MAX = 900_000
const READY_MS_MAX = 30_000
const LOG_CHARACTERS_MAX = 64 * 1024
const BATCH_BYTES_MAX = 16 * 1024 * 1024
/** Of all traces together; those that come later are refused. */
const SPANS_MAX = 100_000
const module = fileURLToPath(new URL('collector', import.meta.url))

/** Its path. Throws the reason where it cannot be built. */
export async function findCollector(): Promise<string> {
  const folder = await cachedDependency(`collector-${VERSION}`, async (into) => {
    const what = ['-trimpath', '-ldflags=-s -w', '-o', join(into, 'collector'), '.']
    await runGo(['build', ...what], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'collector')
}

/** A collector that is ready. */
export interface RunningCollector {
  /** Where it takes OTLP over gRPC, and over HTTP. */
  readonly grpcPort: number
  readonly httpPort: number
  /** The spans of a trace that have come so far; of all traces where none is named. */
  spans(traceId?: string): readonly ReceivedSpan[]
  stop(): Promise<void>
}

/** Starts one. Throws its log where it does not start. */
export async function startCollector(): Promise<RunningCollector> {
  const path = await findCollector()
  const received: ReceivedSpan[] = []
  const sink = await openSink(received)
  const [grpcPort, httpPort] = [await freePort(), await freePort()]
  const folder = await mkdtemp(join(tmpdir(), 'curtail-collector-'))
  const configPath = join(folder, 'config.yaml')
  await writeFile(configPath, JSON.stringify(configOf({ grpcPort, httpPort, sink })))
  const line = ['--pdeathsig', 'KILL', 'nice', '-n', '15', path, `--config=file:${configPath}`]
  const child = spawn('setpriv', line, { stdio: ['ignore', 'ignore', 'pipe'] })
  const log = logOf(child)
  const ended = new Promise<void>((resolve) => {
    for (const event of ['error', 'exit']) {
      child.once(event, () => {
        resolve()
      })
    }
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    sink.closeAllConnections()
    sink.close()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error('it ended')
      return (await canConnect(grpcPort)) && (await canConnect(httpPort))
    }
    await waitFor('the collector', isReady, READY_MS_MAX)
  } catch (error) {
    await stop()
    throw new Error(`the collector does not start: ${log()}`, { cause: error })
  }
  return {
    ...{ grpcPort, httpPort, stop },
    spans: (id) => (id === undefined ? received : received.filter((one) => one.traceId === id)),
  }
}

/** What takes the spans that the collector has taken; refuses what is beyond its bounds. */
async function openSink(into: ReceivedSpan[]): Promise<Server> {
  const sink = createServer((req, res) => {
    const chunks: Buffer[] = []
    let bytes = 0
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= BATCH_BYTES_MAX) chunks.push(chunk)
    })
    req.on('end', () => {
      const isTooMuch = bytes > BATCH_BYTES_MAX || into.length >= SPANS_MAX
      if (!isTooMuch) into.push(...readSpans(Buffer.concat(chunks).toString()))
      const status = isTooMuch ? 400 : 200
      res.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => sink.listen({ port: 0, host: '127.0.0.1' }, resolve))
  return sink
}

/** JSON is YAML. */
function configOf(given: { grpcPort: number; httpPort: number; sink: Server }): object {
  const at = (port: number) => ({ endpoint: `127.0.0.1:${String(port)}` })
  const { port } = given.sink.address() as AddressInfo
  return {
    receivers: { otlp: { protocols: { grpc: at(given.grpcPort), http: at(given.httpPort) } } },
    exporters: {
      otlp_http: {
        endpoint: `http://127.0.0.1:${String(port)}`,
        encoding: 'json',
        compression: 'none',
        sending_queue: { enabled: false },
      },
    },
    service: {
      telemetry: { metrics: { level: 'none' }, logs: { level: 'warn' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['otlp_http'] } },
    },
  }
}

function logOf(child: ChildProcess): () => string {
  let log = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX)
  })
  return () => log
}
