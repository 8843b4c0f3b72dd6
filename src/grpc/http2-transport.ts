// The transport on HTTP/2 of our own: ShouldRateLimit, health and reflection on the connections
// given. Finds the method of each call and how long it may take; ADR 0011 says why it is ours.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type CallHead, type HeadFault, packings, parseCallHead } from './call-head.ts'
import { createHealthService } from './health.ts'
import type { CallStream } from './http2/call-stream.ts'
import { Http2Connection } from './http2/connection.ts'
import type { ConnectionDeps } from './http2/connection-deps.ts'
import { errorCodes } from './http2/frames.ts'
import type { HeaderField } from './http2/hpack-decoder.ts'
import { type BoundKind, ProcessBounds } from './http2/process-bounds.ts'
import { Turns } from './http2/turns.ts'
import { createReflection, type OpenReflection } from './reflection.ts'
import { answerCalls, type CallDeps } from './should-rate-limit.ts'
import type { CallFault } from './http2/status-codes.ts'
import { StreamingCall } from './streaming-call.ts'
import { traceCalls } from './trace-calls.ts'
import type { ConnectionAge, RateLimitTransport } from './transport.ts'
import { UnaryCall, type UnaryMethod } from './unary-call.ts'

/** Calls are over after these, whatever their client says: of one message, of tools, watches. */
const UNARY_MS_MAX = 10_000
const REFLECTION_MS_MAX = 60_000
const WATCH_MS_MAX = 3_600_000
/** How often what is due is looked after. */
const LOOK_EVERY_MS = 100
/** Looking takes so long at most before others work. */
const LOOK_MS_MAX = 2
/** Ages differ by a tenth either way, lest all clients come anew at once. */
const AGE_SPREAD = 0.1

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEALTH = '/grpc.health.v1.Health/'
const unknownMethod: CallFault = {
  code: 'UNIMPLEMENTED',
  details: 'there is no such method: this is envoy.service.ratelimit.v3.RateLimitService',
}

/** Gives the stream of a call its listener. */
type BeginCall = (stream: CallStream, head: CallHead) => void

/** A method, and how long its calls may be open. */
interface Method {
  readonly begin: BeginCall
  readonly msMax: number
}

/** What it needs. */
export type TransportDeps = CallDeps &
  ConnectionAge & {
    /** A connection was shed, or held to its share of what the process holds. */
    readonly onShed?: (kind: BoundKind) => void
    /** @default of the process */
    readonly bounds?: ProcessBounds
  }

/** Makes the transport. */
export function createHttp2Transport(deps: TransportDeps): RateLimitTransport {
  const health = createHealthService()
  const connections = new Set<Http2Connection>()
  const nowMs = () => performance.now()
  const methods = methodsOf(deps, health)
  const bounds = deps.bounds ?? new ProcessBounds(deps.onShed ?? (() => undefined))
  const turns = new Turns(nowMs)
  let isLeaving = false
  let looking: NodeJS.Timeout | undefined
  /** Looks at all, and lets others work in between. */
  const look = (at = [...connections].values()) => {
    const begunMs = nowMs()
    for (const connection of at) {
      connection.look(nowMs())
      if (nowMs() - begunMs > LOOK_MS_MAX) {
        setImmediate(look, at)
        return
      }
    }
  }
  const begin = (stream: CallStream, fields: readonly HeaderField[] | undefined) => {
    const head = parseCallHead(fields)
    if ('kind' in head) refuse(stream, head)
    else {
      const { msMax, begin } = methods.get(head.path) ?? unknown
      stream.untilMs = nowMs() + Math.min(head.timeoutMs ?? msMax, msMax)
      begin(stream, head)
    }
  }
  return {
    serve(socket) {
      if (socket instanceof Socket) socket.setNoDelay(true)
      const address = addressOf(socket)
      const share = bounds.open(address, () => {
        connection.shed()
      })
      if (share === undefined) {
        socket.on('error', () => undefined).destroy() // its client sees that it is closed
        return
      }
      const connection: Http2Connection = openConnection(socket, deps, {
        begin,
        nowMs,
        share: share.parts,
        address,
        turns,
        onDefect: deps.onDefect,
        onGone: () => {
          bounds.close(share)
          connections.delete(connection)
          if (connections.size > 0) return
          clearInterval(looking)
          looking = undefined
        },
      })
      connections.add(connection)
      looking ??= setInterval(() => {
        look()
      }, LOOK_EVERY_MS)
      if (isLeaving) connection.leave()
    },
    setServing: health.set,
    close() {
      isLeaving = true
      health.end()
      for (const connection of connections) connection.leave()
    },
  }
}

/** A connection that ends at its age, and is cut after its grace. */
function openConnection(
  socket: Duplex,
  { ageMsMax, graceMs }: ConnectionAge,
  deps: ConnectionDeps,
): Http2Connection {
  let timer: NodeJS.Timeout | undefined
  const connection = new Http2Connection(socket, {
    ...deps,
    onGone() {
      clearTimeout(timer)
      deps.onGone()
    },
  })
  if (ageMsMax > 0) {
    const spread = 1 + AGE_SPREAD * (2 * Math.random() - 1)
    timer = setTimeout(() => {
      connection.leave()
      timer = setTimeout(() => {
        connection.cut()
      }, graceMs)
    }, ageMsMax * spread)
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
    const begin: BeginCall = (stream, head) => {
      const own = methodFor(head)
      const deps = own === method ? unaryDeps : { ...unaryDeps, method: own }
      stream.listener = new UnaryCall(deps, stream, head.packing)
    }
    return { begin, msMax: UNARY_MS_MAX }
  }
  const streaming = (open: OpenReflection, msMax: number): Method => {
    const begin: BeginCall = (stream, { packing }) => {
      stream.listener = new StreamingCall({ open, onDefect }, stream, packing)
    }
    return { begin, msMax }
  }
  return new Map<string, Method>([
    [METHOD, unary(answerCalls(deps))],
    [`${HEALTH}Check`, unary(health.check)],
    [`${HEALTH}List`, unary(health.list)],
    [`${HEALTH}Watch`, streaming(health.watch, WATCH_MS_MAX)],
    ...[...createReflection()].map(
      ([path, open]) => [path, streaming(open, REFLECTION_MS_MAX)] as const,
    ),
  ])
}

function refuse(stream: CallStream, head: HeadFault): void {
  if (head.kind === 'malformed') stream.reset(errorCodes.protocol)
  else if (head.kind === 'http') stream.refuseHttp(head.status)
  else stream.refuse(head.fault, [['grpc-accept-encoding', packings.join(',')]])
  stream.done()
}

const unknown: Method = {
  begin(stream) {
    stream.refuse(unknownMethod)
    stream.done()
  },
  msMax: UNARY_MS_MAX,
}

/** What clients are told apart by: those of a unix socket cannot be. */
function addressOf(socket: Duplex): string {
  return socket instanceof Socket ? (socket.remoteAddress ?? 'unix') : 'unix'
}
