// The HTTP listener: limits on what a client can consume, and a graceful shutdown. It defines no
// routes: a fast path handles what it can, and the Express app behind it handles the rest.
import {
  createServer,
  IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Express } from 'express'
import { pause } from '../resilience/deadline.ts'
import { requestIdOf } from '../telemetry/request-id.ts'
import { OperatorError } from '../process/role.ts'
import { lingeringClose, DISCARD_MS_MAX } from './lingering-close.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'
import { BODY_BYTES_MAX } from './read-body.ts'
import { dispatchPipelined } from './dispatch-pipelined.ts'
import { handleClientError } from './handle-client-error.ts'
import { traceRequests } from './trace-requests.ts'

/** Handles a request without a framework and returns `true`, or leaves it to the app. */
export type FastPath = (req: IncomingMessage, res: ServerResponse) => boolean

/** The request handlers of a listener. */
interface Handlers {
  readonly baseUrl: string
  readonly app: Express
  readonly fastPath?: FastPath
}

/** An open port. */
export interface Listener {
  readonly port: number
  /** Sets the handlers, which also get the requests received since the port opened. */
  attach(handlers: Handlers): void
  /** Stops accepting, lets requests in flight complete for `msMax`, closes every connection. */
  drain(msMax?: number): Promise<void>
}

/** Request line and headers together, in bytes. */
const HEADER_BYTES_MAX = 16 * 1024
const CONNECTIONS_MAX = 10_000
/** Envoy closes an idle connection after 55 s, so it never uses one that we are closing. */
const KEEP_ALIVE_MS = 60_000
/** Time-outs of the headers and of the whole request, from the first byte. */
const HEADERS_MS_MAX = 10_000
const REQUEST_MS_MAX = 20_000
const TIMEOUT_CHECK_MS = 1000
/** A client that reads nothing for one to two of these intervals is disconnected. */
const STALL_MS_MAX = 21_000
/** A check after more than this many intervals is overdue. */
const OVERDUE_INTERVALS = 1.2
/** Time from the start of a drain until idle connections are closed, and until all are. */
const DRAIN_IDLE_MS = 1000
const DRAIN_MS_MAX = 3500
const DRAIN_CHECK_MS = 50

/** Where and how to listen. */
interface ListenOptions {
  readonly port: number
  readonly host?: string
  /** Name of the setting that chose the port. */
  readonly setting: string
  /** Called with the error if a connection cannot be accepted: no free descriptor, for example. */
  readonly onError: (error: unknown) => void
  /** How long `drain` waits for requests in flight. @default 3500 */
  readonly drainMsMax?: number
  /** How often to check for clients that do not read their responses. @default 21_000 */
  readonly stallMsMax?: number
}

/** Opens `port` (0 = any free port) on `host`, or on every address. Throws OperatorError. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const classes = messageClasses()
  const server = createServer({
    ...classes,
    maxHeaderSize: HEADER_BYTES_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    requireHostHeader: false, // `hostFault` checks it; the response is a problem document
    // A request without a body emits no 'end' or 'close', which saves a tenth of a redirect's time.
    optimizeEmptyRequests: true,
  })
  server.maxConnections = CONNECTIONS_MAX
  // A client that half-closes the connection after its request still gets its response.
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections = trackConnections(server)
  destroyStalled(server, { connections, msMax: options.stallMsMax ?? STALL_MS_MAX })
  const queued: [IncomingMessage, ServerResponse][] = []
  const enqueue = (...exchange: [IncomingMessage, ServerResponse]) => void queued.push(exchange)
  server.on('request', enqueue)
  server.on('checkContinue', enqueue) // readBody sends 100 Continue
  await startListening(server, options)
  server.on('error', options.onError)
  return {
    port: (server.address() as AddressInfo).port,
    attach({ baseUrl, app, fastPath }) {
      presetPrototypes(app, classes)
      const handleInApp = app as unknown as (
        ...args: [IncomingMessage, ServerResponse, () => void]
      ) => void
      const handle = traceRequests((req, res) => {
        const detail = hostFault(req)
        if (detail !== undefined) {
          sendProblem(res, { name: 'bad-request', detail }, baseUrl)
          return
        }
        if (!req.url?.startsWith('/')) req.url = originForm(req.url)
        if (fastPath?.(req, res) === true) return
        // What the app does not handle: a path without a handler, a target that Express cannot
        // parse, or an error after the response has started.
        handleInApp(req, res, () => {
          if (res.headersSent) res.destroy()
          else sendNotFound(req, res, baseUrl)
        })
      })
      const dispatch = dispatchPipelined(handle)
      server.off('request', enqueue).off('checkContinue', enqueue)
      server.on('request', dispatch).on('checkContinue', dispatch)
      for (const exchange of queued.splice(0)) dispatch(...exchange)
      server.on('checkExpectation', dispatch) // an expectation other than 100-continue is ignored
      server.on('clientError', (error, socket) => {
        handleClientError({ error, socket, baseUrl })
      })
      server.on('connect', (_req, socket) => {
        socket.on('error', () => undefined) // Node.js has removed its listener; 'close' follows
        const error = Object.assign(new Error('CONNECT'), { code: 'HPE_INVALID_METHOD' })
        handleClientError({ error, socket, baseUrl })
      })
    },
    async drain(msMax = options.drainMsMax ?? DRAIN_MS_MAX) {
      classes.draining.now = true
      await drainConnections(server, { connections, msMax })
    },
  }
}

/** Why the Host headers are invalid; `headers` has only the first (RFC 9112 §3.2). */
function hostFault({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  if (headers.host === undefined)
    return httpVersion === '1.1' ? 'An HTTP/1.1 request must have a Host header' : undefined
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts++
  return hosts <= 1 ? undefined : 'A request must have only one Host header'
}

/**
 * The classes of messages. `writeHead` appends the request's id to an array of headers (always a
 * new one), which takes less CPU time than `setHeader`; while draining, it closes the connection.
 */
function messageClasses() {
  const draining = { now: false }
  type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]
  class Response<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
      if (draining.now) this.shouldKeepAlive = false
      if (!this.req.complete) boundUnreadBody(this.req, this)
      const own = typeof reason === 'string' ? headers : reason
      if (Array.isArray(own)) own.push('X-Request-Id', requestIdOf(this.req))
      else this.setHeader('X-Request-Id', requestIdOf(this.req))
      if (typeof reason === 'string') return super.writeHead(status, reason, headers)
      return super.writeHead(status, reason)
    }
  }
  class Request extends IncomingMessage {}
  return { draining, IncomingMessage: Request, ServerResponse: Response }
}

/**
 * Bounds what is read of a body that is incomplete when the response starts. The connection stays
 * open only if the length is known and within the limit, and all arrives within DISCARD_MS_MAX.
 */
function boundUnreadBody(req: IncomingMessage, res: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers
  if (length === undefined && encoding === undefined) return
  if (encoding !== undefined || Number(length) > BODY_BYTES_MAX) {
    res.shouldKeepAlive = false
    return
  }
  res.once('finish', () => {
    if (req.complete) return
    const timer = setTimeout(() => {
      if (!req.complete) lingeringClose(req.socket)
    }, DISCARD_MS_MAX)
    timer.unref()
  })
}

/**
 * Express changes the prototype of every request and response, which slows them down. Here they
 * are created with that prototype, so that the change has no effect.
 */
function presetPrototypes(app: Express, classes: ReturnType<typeof messageClasses>): void {
  Object.setPrototypeOf(classes.IncomingMessage.prototype, app.request)
  Object.setPrototypeOf(classes.ServerResponse.prototype, app.response)
  app.request = classes.IncomingMessage.prototype as typeof app.request
  app.response = classes.ServerResponse.prototype as unknown as typeof app.response
}

/** Path and query of a target in absolute form, as sent. For `*` and others, a path of no route. */
function originForm(target: string | undefined): string {
  const rest = /^https?:\/\/[^/?#]*(.*)$/i.exec(target ?? '')?.[1]
  if (rest === undefined) return '/*'
  return rest.startsWith('/') ? rest : `/${rest}`
}

async function startListening(
  server: Server,
  { port, host, setting }: { port: number; host?: string; setting: string },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const hint = host === undefined ? '' : `, or change the address ${host}`
      const message =
        error.code === 'EADDRINUSE'
          ? `port ${port} is in use: stop the process that uses it, or set ${setting} to another`
          : `port ${port} cannot be opened (${error.code ?? ''}): set ${setting} to another${hint}`
      reject(new OperatorError(message))
    }
    server.once('error', fail)
    server.listen({ port, ...(host !== undefined && { host }) }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/** Tracks the open connections. */
function trackConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.destroySoon = () => {
      lingeringClose(socket) // Node.js calls this after the last response
    }
    socket.once('close', () => open.delete(socket))
  })
  return open
}

/**
 * Destroys connections whose pending writes have not progressed since the last check. A timer per
 * connection, reset by every byte, would cost 6 % of a redirect.
 */
function destroyStalled(
  server: Server,
  { connections, msMax }: { connections: ReadonlySet<Socket>; msMax: number },
): void {
  const writtenBefore = new WeakMap<Socket, number>()
  let checkedMs = performance.now()
  const checks = setInterval(() => {
    const nowMs = performance.now()
    // While this process was blocked, no client could progress: only record that state.
    const isOverdue = nowMs - checkedMs > OVERDUE_INTERVALS * msMax
    checkedMs = nowMs
    for (const socket of connections) {
      const written = socket.bytesWritten - socket.writableLength
      const hasStalled = socket.writableLength > 0 && writtenBefore.get(socket) === written
      if (hasStalled && !isOverdue) socket.destroy()
      writtenBefore.set(socket, written)
    }
  }, msMax)
  checks.unref()
  server.once('close', () => {
    clearInterval(checks)
  })
}

async function drainConnections(
  server: Server,
  { connections, msMax }: { connections: ReadonlySet<Socket>; msMax: number },
): Promise<void> {
  // Not the close of node:http: it destroys idle connections, on which a request may be arriving.
  const closed = new Promise<'closed'>((resolve) => {
    NetServer.prototype.close.call(server, () => {
      resolve('closed')
    })
  })
  const startedMs = performance.now()
  while ((await Promise.race([closed, pause(DRAIN_CHECK_MS)])) !== 'closed') {
    const waitedMs = performance.now() - startedMs
    if (waitedMs > msMax) for (const socket of connections) socket.destroy()
    else if (waitedMs > DRAIN_IDLE_MS) {
      // If this process was paused, a connection that seems idle may have an unread request: a turn
      // of the event loop reads it.
      await nextTurn()
      server.closeIdleConnections()
      // Node.js does not count connections that never sent a byte as idle.
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
    }
  }
}
