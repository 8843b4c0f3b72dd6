// The dependency `collector`: the OpenTelemetry Collector, which no registry ships as a program; Go
// builds it once from its published modules, pinned by test/dependencies/collector/go.sum. It
// forwards the received spans to this process.
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
/** The limit of all traces together; later spans are rejected. */
const SPANS_MAX = 100_000
const module = fileURLToPath(new URL('collector', import.meta.url))

/** The path of the collector. Throws the reason if the build fails. */
export async function findCollector(): Promise<string> {
  const folder = await cachedDependency(`collector-${VERSION}`, async (into) => {
    const args = ['-trimpath', '-ldflags=-s -w', '-o', join(into, 'collector'), '.']
    await runGo(['build', ...args], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'collector')
}

/** A ready collector. */
export interface RunningCollector {
  /** The port of OTLP over gRPC. */
  readonly grpcPort: number
  /** The port of OTLP over HTTP. */
  readonly httpPort: number
  /** The spans received so far, of one trace or of all. */
  spans(traceId?: string): readonly ReceivedSpan[]
  stop(): Promise<void>
}

/** Starts a collector. Throws its log if the start fails. */
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
  const exited = new Promise<void>((resolve) => {
    for (const event of ['error', 'exit']) {
      child.once(event, () => {
        resolve()
      })
    }
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
    sink.closeAllConnections()
    sink.close()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error('it exited')
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

/** Starts the server to which the collector forwards spans; rejects those beyond its limits. */
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

/** The configuration, as JSON, which is valid YAML. */
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
