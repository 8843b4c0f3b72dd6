// The edge for a test: a real Envoy with the product's own bootstrap before a pod of this process,
// on free ports of 127.0.0.1. Decides nothing about limits.
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EdgeSettings } from '../../envoy/edge-settings.ts'
import { renderBootstrap, renderCertificate } from '../../envoy/render-bootstrap.ts'
import { findEnvoy, type RunningEnvoy, startEnvoy } from '../parts/envoy.ts'
import { freePort } from '../parts/free-ports.ts'
import { type Answer, type Ask, headerOf, openConnection } from './raw-http.ts'
import { waitFor } from './wait-for.ts'

/** The public origin in answers. */
export const BASE_URL = 'https://cur.tl'
const LIMITER_TIMEOUT = '0.02s'

/** A request as a pod saw it. */
interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: number
}

/** A pod that redirects and creates. */
export interface Pod {
  readonly port: number
  readonly seen: Seen[]
  /** What it answers GET of a path that begins so, with this status. */
  readonly statuses: Map<string, number>
  close(): void
}

/** Starts a pod: GET gives 302 or what `statuses` says, everything else 201. */
export async function startPod(port = 0): Promise<Pod> {
  const seen: Seen[] = []
  const statuses = new Map<string, number>()
  const server: Server = createServer((req, res) => {
    let bytes = 0
    req.on('data', (chunk: Buffer) => (bytes += chunk.length))
    req.on('end', () => {
      const { method = '', url = '', headers } = req
      seen.push({ method, url, headers, bytes })
      const told = [...statuses].find(([path]) => url.startsWith(path))?.[1]
      const status = told ?? (method === 'GET' || method === 'HEAD' ? 302 : 201)
      res.writeHead(status, {
        'X-Request-Id': headers['x-request-id'] ?? 'none',
        'Cache-Control': status === 302 ? 'private, no-store' : 'no-store',
        'Referrer-Policy': 'no-referrer-when-downgrade',
        'X-Robots-Tag': 'noindex',
        'Content-Length': 0,
        ...(status === 302 && { Location: 'https://example.org/A%2fb' }),
      })
      res.end()
    })
  })
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    statuses,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** An edge that is ready. */
export interface Edge {
  readonly port: number
  readonly httpsPort: number
  readonly metricsUrl: string
  readonly envoy: RunningEnvoy
  readonly folder: string
  /** One request on a connection of its own; `client` goes into X-Forwarded-For. */
  ask(ask: Ask & { readonly client?: string }): Promise<Answer>
  /** Lines of its access log so far. */
  log(): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

/** Starts it before the pod, with the limiter at `limiterPorts`. */
export async function startEdge(given: {
  readonly podPort: number
  readonly limiterPorts: readonly number[]
  readonly settings?: Partial<EdgeSettings>
  /** Time that it gives the limiter: more than it has, for who counts on a busy machine. */
  readonly limiterTimeout?: string
}): Promise<Edge> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-edge-'))
  const pods = [{ host: '127.0.0.1', port: given.podPort }]
  const settings = {
    baseUrl: BASE_URL,
    listenAddress: '127.0.0.1',
    httpPort: await freePort(),
    httpsPort: await freePort(),
    metricsPort: await freePort(),
    adminPort: await freePort(),
    redirectEndpoints: pods,
    createEndpoints: pods,
    limiterEndpoints: given.limiterPorts.map((port) => ({ host: '127.0.0.1', port })),
    accessLogPath: join(folder, 'access.log'),
    certificatePath: join(folder, 'certificate.yaml'),
    certificateFolder: join(folder, 'certificate'),
    trustedHops: 1,
    ...given.settings,
  }
  const configPath = join(folder, 'envoy.yaml')
  const bootstrap = renderBootstrap(settings)
  const patience = `timeout: ${given.limiterTimeout ?? LIMITER_TIMEOUT}`
  await writeFile(configPath, bootstrap.replace(`timeout: ${LIMITER_TIMEOUT}`, patience))
  await writeFile(settings.certificatePath, renderCertificate(settings))
  const args = ['--file-flush-interval-msec', '20']
  const envoy = await startEnvoy({ path: await findEnvoy(), configPath, args })
  const { httpPort, httpsPort, metricsPort } = settings
  return {
    port: httpPort,
    httpsPort,
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    envoy,
    folder,
    async ask({ client, ...ask }) {
      const connection = await openConnection(httpPort)
      const from = client === undefined ? {} : { 'X-Forwarded-For': client }
      const answer = await connection.exchange({ ...ask, headers: { ...ask.headers, ...from } })
      connection.close()
      return answer
    },
    async log() {
      const lines = (await readFile(settings.accessLogPath, 'utf8')).split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    },
    async stop() {
      await envoy.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Waits until the limiter's answers are heard: 5 in a row, of a client that nobody else is. */
export async function untilLimited(edge: Edge): Promise<void> {
  let heard = 0
  await waitFor('the limiter to answer the edge', async () => {
    const answer = await edge.ask({ path: '/warm', client: '198.18.0.1' })
    heard = headerOf(answer, 'X-RateLimit-Limit') === undefined ? 0 : heard + 1
    return heard >= 5
  })
}
