// The edge: a real Envoy with the product's bootstrap in front of a pod in this process, on free
// ports of 127.0.0.1.
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EdgeSettings } from '../../../envoy/edge-settings.ts'
import { renderBootstrap, renderCertificate } from '../../../envoy/render-bootstrap.ts'
import { findEnvoy, type RunningEnvoy, startEnvoy } from '../../dependencies/envoy.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { type RawResponse, type RawRequest, headerOf, openConnection } from '../http/raw-http.ts'
import { waitFor } from '../wait-for.ts'

/** The public origin in responses. */
export const BASE_URL = 'https://cur.tl'
const LIMITER_TIMEOUT = '0.02s'

/** A request as the pod received it. */
interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: number
}

/** A pod of the redirect and the create service. */
export interface Pod {
  readonly port: number
  readonly requests: ReceivedRequest[]
  /** The response status of requests, by the prefix of their path. */
  readonly statuses: Map<string, number>
  close(): void
}

/** Starts a pod, which responds with the status in `statuses`, or 302 to GET and 201 to others. */
export async function startPod(port = 0): Promise<Pod> {
  const requests: ReceivedRequest[] = []
  const statuses = new Map<string, number>()
  const server: Server = createServer((req, res) => {
    let bytes = 0
    req.on('data', (chunk: Buffer) => (bytes += chunk.length))
    req.on('end', () => {
      const { method = '', url = '', headers } = req
      requests.push({ method, url, headers, bytes })
      const override = [...statuses].find(([path]) => url.startsWith(path))?.[1]
      const status = override ?? (method === 'GET' || method === 'HEAD' ? 302 : 201)
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
    requests,
    statuses,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A ready edge. */
export interface Edge {
  readonly port: number
  readonly httpsPort: number
  readonly metricsUrl: string
  readonly envoy: RunningEnvoy
  readonly folder: string
  /** Sends one request on a new connection; `client` is its X-Forwarded-For. */
  send(request: RawRequest & { readonly client?: string }): Promise<RawResponse>
  /** The lines of the access log so far. */
  log(): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

/** Starts an edge in front of a pod and limiters. */
export async function startEdge(options: {
  readonly podPort: number
  readonly limiterPorts: readonly number[]
  readonly settings?: Partial<EdgeSettings>
  /** The timeout of limiter calls; tests of exact counts need a longer one on a busy machine. */
  readonly limiterTimeout?: string
}): Promise<Edge> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-edge-'))
  const pods = [{ host: '127.0.0.1', port: options.podPort }]
  const settings = {
    baseUrl: BASE_URL,
    listenAddress: '127.0.0.1',
    httpPort: await freePort(),
    httpsPort: await freePort(),
    metricsPort: await freePort(),
    adminPort: await freePort(),
    redirectEndpoints: pods,
    createEndpoints: pods,
    limiterEndpoints: options.limiterPorts.map((port) => ({ host: '127.0.0.1', port })),
    accessLogPath: join(folder, 'access.log'),
    certificatePath: join(folder, 'certificate.yaml'),
    certificateFolder: join(folder, 'certificate'),
    trustedHops: 1,
    ...options.settings,
  }
  const configPath = join(folder, 'envoy.yaml')
  const bootstrap = renderBootstrap(settings)
  const timeout = `timeout: ${options.limiterTimeout ?? LIMITER_TIMEOUT}`
  await writeFile(configPath, bootstrap.replace(`timeout: ${LIMITER_TIMEOUT}`, timeout))
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
    async send({ client, ...request }) {
      const connection = await openConnection(httpPort)
      const from = client === undefined ? {} : { 'X-Forwarded-For': client }
      const response = await connection.exchange({
        ...request,
        headers: { ...request.headers, ...from },
      })
      connection.close()
      return response
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

/** Waits until 5 consecutive responses, to a client that no test uses, have the shared limit. */
export async function waitUntilLimited(edge: Edge): Promise<void> {
  let limited = 0
  await waitFor('the edge to apply limits', async () => {
    const response = await edge.send({ path: '/warm', client: '198.18.0.1' })
    limited = headerOf(response, 'X-RateLimit-Limit') === undefined ? 0 : limited + 1
    return limited >= 5
  })
}
