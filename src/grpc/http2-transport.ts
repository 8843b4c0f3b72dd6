// The transport on our own HTTP/2 implementation (ADR 0011): serves ShouldRateLimit, health and
// reflection. Selects the method and the deadline of each call.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type CallHeaders, type HeaderFault, encodings, parseCallHeaders } from './call-headers.ts'
import { createHealthService } from './health.ts'
import type { CallStream } from './http2/call-stream.ts'
import { Http2Connection } from './http2/connection.ts'
import type { ConnectionDeps } from './http2/connection-deps.ts'
import { errorCodes } from './http2/frames.ts'
import type { HeaderField } from './http2/hpack-decoder.ts'
import { type BoundKind, ProcessBounds } from './http2/process-bounds.ts'
import { RoundRobinScheduler } from './http2/round-robin-scheduler.ts'
import type { OpenReflection } from './reflection.ts'
import { createCallHandler, type CallDeps } from './should-rate-limit.ts'
import type { CallFault } from './http2/status-codes.ts'
import { StreamingCall, type StreamingDeps } from './streaming-call.ts'
import { traceCalls } from './trace-calls.ts'
import type { ConnectionAge, RateLimitTransport } from './transport.ts'
import { UnaryCall, type UnaryMethod } from './unary-call.ts'

/** Maximum durations of unary calls, reflection calls and watches. */
const UNARY_MS_MAX = 10_000
const REFLECTION_MS_MAX = 60_000
const WATCH_MS_MAX = 3_600_000
/** Interval of the deadline checks. */
const CHECK_EVERY_MS = 100
/** Time after which a check yields to the event loop. */
const CHECK_MS_MAX = 2
/** Ages vary by ±10 %, so that clients do not all reconnect at the same time. */
const AGE_JITTER = 0.1

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEALTH = '/grpc.health.v1.Health/'
const REFLECTION = ['v1', 'v1alpha'].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
)
const unknownMethod: CallFault = {
  code: 'UNIMPLEMENTED',
  details: 'unknown method: this server implements envoy.service.ratelimit.v3.RateLimitService',
}

/** Sets the listener of a call's stream. */
type StartCall = (stream: CallStream, headers: CallHeaders) => void

/** A method, and the maximum duration of its calls. */
interface Method {
  readonly start: StartCall
  readonly msMax: number
}

/** The dependencies of the transport. */
type TransportDeps = CallDeps &
  ConnectionAge & {
    /** Called when a bound of the process rejects an acquisition, or closes a connection. */
    readonly onShed?: (kind: BoundKind) => void
    /** The bounds of the process. @default new bounds with `processMax` */
    readonly bounds?: ProcessBounds
  }

/** Creates the transport. */
export function createHttp2Transport(deps: TransportDeps): RateLimitTransport {
  const health = createHealthService()
  const connections = new Set<Http2Connection>()
  const nowMs = () => performance.now()
  const methods = methodsOf(deps, health)
  const bounds = deps.bounds ?? new ProcessBounds(deps.onShed ?? (() => undefined))
  const scheduler = new RoundRobinScheduler(nowMs)
  let isShuttingDown = false
  let timer: NodeJS.Timeout | undefined
  /** Checks all connections; yields to the event loop in between. */
  const checkDeadlines = (remaining = [...connections].values()) => {
    const startedMs = nowMs()
    for (const connection of remaining) {
      connection.checkDeadlines(nowMs())
      if (nowMs() - startedMs > CHECK_MS_MAX) {
        setImmediate(checkDeadlines, remaining)
        return
      }
    }
  }
  const startCall = (stream: CallStream, fields: readonly HeaderField[] | undefined) => {
    const headers = parseCallHeaders(fields)
    if ('kind' in headers) reject(stream, headers)
    else {
      const { msMax, start } = methods.get(headers.path) ?? unknownMethodHandler
      stream.deadlineMs = nowMs() + Math.min(headers.timeoutMs ?? msMax, msMax)
      start(stream, headers)
    }
  }
  return {
    serve(socket) {
      if (socket instanceof Socket) socket.setNoDelay(true)
      const address = addressOf(socket)
      const tracked = bounds.open(address, () => {
        connection.shed('other connections need the resources of this connection')
        connection.destroy() // its memory is released now, not when the client closes
      })
      if (tracked === undefined) {
        socket.on('error', () => undefined).destroy() // the bounds reject the connection
        return
      }
      const connection: Http2Connection = openConnection(socket, deps, {
        startCall,
        nowMs,
        budgets: tracked.budgets,
        address,
        scheduler,
        onDefect: deps.onDefect,
        onClose: () => {
          tracked.close()
          connections.delete(connection)
          if (connections.size > 0) return
          clearInterval(timer)
          timer = undefined
        },
      })
      connections.add(connection)
      timer ??= setInterval(() => {
        checkDeadlines()
      }, CHECK_EVERY_MS)
      if (isShuttingDown) connection.startGracefulShutdown()
    },
    setServing: health.set,
    close() {
      isShuttingDown = true
      health.close()
      for (const connection of connections) connection.startGracefulShutdown()
    },
  }
}

/** Opens a connection that shuts down at its maximum age, and is destroyed `graceMs` later. */
function openConnection(
  socket: Duplex,
  { ageMsMax, graceMs }: ConnectionAge,
  deps: ConnectionDeps,
): Http2Connection {
  let timer: NodeJS.Timeout | undefined
  const connection = new Http2Connection(socket, {
    ...deps,
    onClose() {
      clearTimeout(timer)
      deps.onClose()
    },
  })
  if (ageMsMax > 0) {
    const jitter = 1 + AGE_JITTER * (2 * Math.random() - 1)
    timer = setTimeout(() => {
      connection.startGracefulShutdown()
      timer = setTimeout(() => {
        connection.destroy()
      }, graceMs)
    }, ageMsMax * jitter)
  }
  return connection
}

function methodsOf(
  deps: CallDeps,
  health: ReturnType<typeof createHealthService>,
): ReadonlyMap<string, Method> {
  const { onDefect } = deps
  const unary = (method: UnaryMethod): Method => {
    const unaryDeps = { method, onDefect }
    const methodFor = traceCalls(method)
    const start: StartCall = (stream, headers) => {
      const own = methodFor(headers)
      const deps = own === method ? unaryDeps : { ...unaryDeps, method: own }
      stream.listener = new UnaryCall(deps, stream, headers.encoding)
    }
    return { start, msMax: UNARY_MS_MAX }
  }
  const streaming = (open: StreamingDeps['open'], msMax: number): Method => {
    const start: StartCall = (stream, { encoding }) => {
      stream.listener = new StreamingCall({ open, onDefect }, stream, encoding)
    }
    return { start, msMax }
  }
  return new Map<string, Method>([
    [METHOD, unary(createCallHandler(deps))],
    [`${HEALTH}Check`, unary(health.check)],
    [`${HEALTH}List`, unary(health.list)],
    [`${HEALTH}Watch`, streaming(health.watch, WATCH_MS_MAX)],
    ...REFLECTION.map(
      (path) => [path, streaming(openReflection(path), REFLECTION_MS_MAX)] as const,
    ),
  ])
}

let reflection: ReadonlyMap<string, OpenReflection> | undefined

/** Opens a method of reflection. Its packages are loaded only when it is called. */
function openReflection(path: string): StreamingDeps['open'] {
  return async (stream) => {
    const { createReflection } = await import('./reflection.ts')
    reflection ??= createReflection()
    const open = reflection.get(path)
    if (open === undefined) throw new Error(`reflection has no method ${path}`)
    return open(stream)
  }
}

function reject(stream: CallStream, fault: HeaderFault): void {
  if (fault.kind === 'malformed') stream.reset(errorCodes.protocol)
  else if (fault.kind === 'http') stream.rejectHttp(fault.status)
  else stream.reject(fault.fault, [['grpc-accept-encoding', encodings.join(',')]])
  stream.handlerDone()
}

const unknownMethodHandler: Method = {
  start(stream) {
    stream.reject(unknownMethod)
    stream.handlerDone()
  },
  msMax: UNARY_MS_MAX,
}

/** The client's address; all clients of a unix socket share the address 'unix'. */
function addressOf(socket: Duplex): string {
  return socket instanceof Socket ? (socket.remoteAddress ?? 'unix') : 'unix'
}
