// The public listener: bounds on what a client may take of us, and an end that drops nobody. Knows
// no route: a lane answers what it can at once, and the Express app behind it answers the rest.
import {
  createServer,
  IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { setImmediate as whenRead } from 'node:timers/promises'
import type { Express } from 'express'
import { pause } from '../resilience/deadline.ts'
import { requestIdFrom } from '../telemetry/request-id.ts'
import { OperatorError } from '../process/role.ts'
import { closeGently, DISCARD_MS_MAX } from './close-gently.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'
import { BODY_BYTES_MAX } from './read-body.ts'
import { refuseConnection } from './refuse-connection.ts'
import { traceRequests } from './trace-requests.ts'

/** Answers a request at once and says `true`, or leaves it to the app. */
export type Lane = (req: IncomingMessage, res: ServerResponse) => boolean

/** What answers the requests of a listener. */
interface Handlers {
  readonly baseUrl: string
  readonly app: Express
  readonly lane?: Lane
}

/** A port that is open. */
export interface Listener {
  readonly port: number
  /** Hands requests over, also those that came since the port was opened. */
  attach(handlers: Handlers): void
  /** Stops accepting, lets requests in flight complete for `msMax`, closes every connection. */
  drain(msMax?: number): Promise<void>
}

/** Request line and headers together, in bytes. */
const HEADER_BYTES_MAX = 16 * 1024
const CONNECTIONS_MAX = 10_000
/** Envoy lets go of an idle connection after 55 s, so it never uses one that we are closing. */
const KEEP_ALIVE_MS = 60_000
/** A head must be complete this long after its first byte, a whole request that long. */
const HEADERS_MS_MAX = 10_000
const REQUEST_MS_MAX = 20_000
const TIMEOUT_CHECK_MS = 1000
/** A client that takes no byte of its answer for this long is cut, or after twice as long. */
const STALL_MS_MAX = 21_000
/** A look that comes after so many times the interval is late. */
const LOOK_LATE_FROM = 1.2
/** While draining: the silence after which a connection is closed, and when waiting ends. */
const DRAIN_IDLE_MS = 1000
const DRAIN_MS_MAX = 3500
const DRAIN_CHECK_MS = 50

/** Where and how to listen. */
interface ListenOptions {
  readonly port: number
  readonly host?: string
  /** Name of the setting that chose the port. */
  readonly setting: string
  /** Told of connections that could not be accepted, as where no descriptor is left. */
  readonly onError: (error: unknown) => void
  /** How long `drain` waits for requests in flight. @default 3500 */
  readonly drainMsMax?: number
  /** How often to look for clients that take nothing of their answers. @default 21_000 */
  readonly stallMsMax?: number
}

/** Opens `port` (0 = any free one) on `host`, else on every address. Throws OperatorError. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const kinds = messageKinds()
  const server = createServer({
    ...kinds,
    maxHeaderSize: HEADER_BYTES_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    requireHostHeader: false, // refused in `dispatch`, with a problem document
  })
  server.maxConnections = CONNECTIONS_MAX
  // Who has sent all it has to say and closes its half still gets its answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections = watchConnections(server)
  cutStalled(server, { connections, msMax: options.stallMsMax ?? STALL_MS_MAX })
  const early: [IncomingMessage, ServerResponse][] = []
  const keep = (...exchange: [IncomingMessage, ServerResponse]) => void early.push(exchange)
  server.on('request', keep)
  server.on('checkContinue', keep) // the body is asked for where it is read
  await opened(server, options)
  server.on('error', options.onError)
  return {
    port: (server.address() as AddressInfo).port,
    attach({ baseUrl, app, lane }) {
      presetPrototypes(app, kinds)
      const pass = app as unknown as (
        ...given: [IncomingMessage, ServerResponse, () => void]
      ) => void
      const dispatch = traceRequests((req, res) => {
        boundUnread(req, res)
        if (req.headers.host === undefined && req.httpVersion === '1.1') {
          res.setHeader('X-Request-Id', requestIdFrom(req.headers['x-request-id']))
          const detail = 'A request of HTTP/1.1 must have a Host header'
          sendProblem(res, { name: 'bad-request', detail }, baseUrl)
          return
        }
        if (!req.url?.startsWith('/')) req.url = originForm(req.url)
        if (lane?.(req, res) === true) return
        res.setHeader('X-Request-Id', requestIdFrom(req.headers['x-request-id']))
        pass(req, res, () => {
          unanswered(req, res, baseUrl)
        })
      })
      server.off('request', keep)
      server.off('checkContinue', keep)
      server.on('request', dispatch)
      server.on('checkContinue', dispatch)
      for (const exchange of early.splice(0)) dispatch(...exchange)
      server.on('checkExpectation', dispatch) // an expectation other than 100-continue is ignored
      server.on('clientError', (error, socket) => {
        refuseConnection({ error, socket, baseUrl })
      })
      server.on('connect', (_req, socket) => {
        const error = Object.assign(new Error('CONNECT'), { code: 'HPE_INVALID_METHOD' })
        refuseConnection({ error, socket, baseUrl })
      })
    },
    async drain(msMax = options.drainMsMax ?? DRAIN_MS_MAX) {
      kinds.draining.now = true
      await drained(server, { connections, msMax })
    },
  }
}

/** Ends what Express gives back: a target that its parser rejects, or an answer that broke off. */
function unanswered(req: IncomingMessage, res: ServerResponse, baseUrl: string): void {
  if (res.headersSent) res.destroy()
  else sendNotFound(req, res, baseUrl)
}

/** The classes of requests and responses; once draining, each answer is its connection's last. */
function messageKinds() {
  const draining = { now: false }
  type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]
  class Response<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    /** Whether the connection closes if the body has not been read by now. */
    closesUnread = false
    override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
      if (draining.now || (this.closesUnread && !this.req.complete)) this.shouldKeepAlive = false
      if (typeof reason === 'string') return super.writeHead(status, reason, headers)
      return super.writeHead(status, reason)
    }
  }
  class Request extends IncomingMessage {}
  return { draining, IncomingMessage: Request, ServerResponse: Response }
}

/**
 * Bounds what is read of a body after a response that did not wait for it: one of unknown or too
 * great a length closes the connection; another one may end, and so keep it, within its time.
 */
function boundUnread(req: IncomingMessage, res: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers
  if (length === undefined && encoding === undefined) return
  if (encoding !== undefined || Number(length) > BODY_BYTES_MAX) {
    Object.assign(res, { closesUnread: true })
    return
  }
  res.once('finish', () => {
    if (req.complete) return
    const late = setTimeout(() => {
      if (!req.complete) closeGently(req.socket)
    }, DISCARD_MS_MAX)
    late.unref()
  })
}

/**
 * Express gives each request and response another prototype, which makes them slow. Here they have
 * it from birth, so that what Express does changes nothing.
 */
function presetPrototypes(app: Express, kinds: ReturnType<typeof messageKinds>): void {
  Object.setPrototypeOf(kinds.IncomingMessage.prototype, app.request)
  Object.setPrototypeOf(kinds.ServerResponse.prototype, app.response)
  app.request = kinds.IncomingMessage.prototype as typeof app.request
  app.response = kinds.ServerResponse.prototype as unknown as typeof app.response
}

/** Path and query of a request target in absolute form (RFC 9112 §3.2.2), as they were sent. */
function originForm(target: string | undefined): string {
  const rest = /^https?:\/\/[^/?#]*(.*)$/i.exec(target ?? '')?.[1]
  if (rest === undefined) return '/*'
  return rest.startsWith('/') ? rest : `/${rest}`
}

async function opened(
  server: Server,
  { port, host, setting }: { port: number; host?: string; setting: string },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `port ${port} is in use: stop what uses it, or set ${setting} to another`
          : `port ${port} cannot be opened (${error.code ?? ''}): set ${setting} to another`
      reject(new OperatorError(why))
    }
    server.once('error', fail)
    server.listen({ port, ...(host !== undefined && { host }) }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/** The connections that are open. */
function watchConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.destroySoon = () => {
      closeGently(socket) // how http ends a connection after its last response
    }
    socket.once('close', () => open.delete(socket))
  })
  return open
}

/**
 * Cuts who finished no write between two looks though one waits. A timer of each connection, reset
 * by every byte, would cost 6 % of a redirect.
 */
function cutStalled(
  server: Server,
  { connections, msMax }: { connections: ReadonlySet<Socket>; msMax: number },
): void {
  const movedBefore = new WeakMap<Socket, number>()
  let lookedMs = performance.now()
  const looking = setInterval(() => {
    const nowMs = performance.now()
    // While this process was held up itself, nobody could take anything: such a look only notes.
    const isLate = nowMs - lookedMs > LOOK_LATE_FROM * msMax
    lookedMs = nowMs
    for (const socket of connections) {
      const moved = socket.bytesWritten - socket.writableLength
      const hasStalled = socket.writableLength > 0 && movedBefore.get(socket) === moved
      if (hasStalled && !isLate) socket.destroy()
      movedBefore.set(socket, moved)
    }
  }, msMax)
  looking.unref()
  server.once('close', () => {
    clearInterval(looking)
  })
}

async function drained(
  server: Server,
  { connections, msMax }: { connections: ReadonlySet<Socket>; msMax: number },
): Promise<void> {
  // Not http's own close: it cuts idle connections at once, on which a request may be arriving.
  const closed = new Promise<'closed'>((resolve) => {
    NetServer.prototype.close.call(server, () => {
      resolve('closed')
    })
  })
  const begunMs = performance.now()
  while ((await Promise.race([closed, pause(DRAIN_CHECK_MS)])) !== 'closed') {
    const waitedMs = performance.now() - begunMs
    if (waitedMs > msMax) for (const socket of connections) socket.destroy()
    else if (waitedMs > DRAIN_IDLE_MS) {
      // After a pause of this process requests may wait to be read: they are no idle connections.
      await whenRead()
      server.closeIdleConnections()
      // Those that never sent a byte are not idle to Node.js.
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
    }
  }
}
