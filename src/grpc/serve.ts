// The gRPC listener: a port or a unix socket, optional TLS, a limit on connections, and a graceful
// shutdown. Passes each connection to the transport, which implements HTTP/2.
import { lstat, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { ConfigError } from '../config/config.ts'
import { within } from '../resilience/deadline.ts'
import { OperatorError } from '../process/role.ts'
import type { BoundKind } from './http2/process-bounds.ts'
import { createHttp2Transport } from './http2-transport.ts'
import { findMissingTls, type GrpcConfig } from './settings.ts'
import type { CallDeps } from './should-rate-limit.ts'
import { isCertificateFor, type TlsFiles } from '../process/tls-files.ts'
import { createSecureServer } from './secure-server.ts'
import type { RateLimitTransport } from './transport.ts'

/** A running gRPC server. */
export interface GrpcServer {
  /** 0 on a unix socket. */
  readonly port: number
  /** Sets the status of health checks: whether the limiter can decide calls; initially false. */
  setServing(isServing: boolean): void
  /** Stops accepting, completes calls in flight, and closes all connections at the deadline. */
  close(): Promise<void>
}

/** The dependencies of the server. */
export interface GrpcServeDeps extends CallDeps {
  readonly config: GrpcConfig
  /** Called with errors outside of calls, such as an unreadable certificate. */
  readonly onError: (error: unknown) => void
  /** Called when a bound of the process rejects an acquisition, or closes a connection. */
  readonly onShed?: (kind: BoundKind) => void
  /** How long `close` waits for calls in flight. @default 4000 */
  readonly closeMsMax?: number
}

/**
 * Maximum number of connections, including those in a TLS handshake. It is higher than the
 * transport's bound, which rejects connections fairly and must therefore take effect first.
 */
const CONNECTIONS_MAX = 5000
const CLOSE_MS_MAX = 4000
/** Timeout of the probe that checks whether a unix socket is in use. */
const PROBE_MS_MAX = 1000

/** Opens the listener and starts to serve. Throws OperatorError or ConfigError. */
export async function serveGrpc(deps: GrpcServeDeps): Promise<GrpcServer> {
  const { config, onError } = deps
  const transport = createHttp2Transport({
    decide: deps.decide,
    onCall: deps.onCall,
    onDefect: deps.onDefect,
    ...(deps.onShed !== undefined && { onShed: deps.onShed }),
    ageMsMax: config.GRPC_MAX_CONNECTION_AGE,
    graceMs: config.GRPC_MAX_CONNECTION_AGE_GRACE,
  })
  const { server, stopWatching } = config.GRPC_SERVER_USE_TLS
    ? await createSecureListener(deps, transport)
    : { server: createServer(transport.serve), stopWatching: undefined }
  const connections = watchConnections(server)
  server.maxConnections = CONNECTIONS_MAX
  try {
    await listen(server, config)
  } catch (error) {
    await stopWatching?.()
    throw error
  }
  server.on('error', onError) // emitted if a connection cannot be accepted
  const address = server.address()
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    setServing: (isServing) => {
      transport.setServing(isServing)
    },
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => {
          resolve()
        })
      })
      transport.close()
      const timedOut = () =>
        new Error('calls or TLS handshakes were still in flight at the deadline')
      await within(deps.closeMsMax ?? CLOSE_MS_MAX, closed, timedOut).catch(onError)
      for (const connection of connections) connection.destroy()
      await stopWatching?.()
      await closed
    },
  }
}

function watchConnections(server: Server): ReadonlySet<Socket> {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  return connections
}

async function createSecureListener(deps: GrpcServeDeps, transport: RateLimitTransport) {
  const { config, onError } = deps
  const secure = await createSecureServer(tlsFilesOf(config), onError)
  const name = config.GRPC_CLIENT_TLS_SAN
  secure.server.on('secureConnection', (socket) => {
    if (name === '' || isCertificateFor(socket, name)) transport.serve(socket)
    else socket.destroy()
  })
  return secure
}

function tlsFilesOf(config: GrpcConfig): TlsFiles {
  const problems = findMissingTls(config)
  if (problems.length > 0) throw new ConfigError(problems)
  const { GRPC_SERVER_TLS_CERT: certificate, GRPC_SERVER_TLS_KEY: key } = config
  const authorities = config.GRPC_CLIENT_TLS_CACERT
  return { certificate, key, authorities: authorities === '' ? undefined : authorities }
}

async function listen(server: Server, config: GrpcConfig): Promise<void> {
  const { GRPC_HOST: host, GRPC_PORT: port, GRPC_UDS: path } = config
  if (path !== '') await removeStaleSocket(path)
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const what = path === '' ? `${host} port ${port}` : path
      const setting = path === '' ? 'GRPC_HOST and GRPC_PORT' : 'GRPC_UDS'
      const reason = error.code ?? error.message
      reject(new OperatorError(`Cannot serve gRPC on ${what}: ${reason}; change ${setting}`))
    }
    server.once('error', fail)
    server.listen(path === '' ? { host, port } : { path }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/** Removes a stale unix socket; throws OperatorError if another process serves it. */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  if (!found.isSocket()) {
    throw new OperatorError(
      `GRPC_UDS must name a unix socket, or a path that does not exist: current value is ${path}`,
    )
  }
  if (await isServed(path)) {
    throw new OperatorError(
      `${path} is in use: stop the process that serves it, or change GRPC_UDS`,
    )
  }
  await rm(path, { force: true })
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path, timeout: PROBE_MS_MAX })
    const finish = (isUp: boolean) => {
      socket.destroy()
      resolve(isUp)
    }
    socket.once('connect', () => {
      finish(true)
    })
    socket.once('timeout', () => {
      finish(true)
    })
    // If the queue of a live server is full, the error has another code.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      finish(code !== 'ECONNREFUSED' && code !== 'ENOENT')
    })
  })
}
