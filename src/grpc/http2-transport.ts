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
import type { Budget } from './message-reader.ts'
import { createReflection, type OpenReflection } from './reflection.ts'
import { answerCalls, type CallDeps } from './should-rate-limit.ts'
import type { CallFault } from './status-codes.ts'
import { StreamingCall } from './streaming-call.ts'
import { traceCalls } from './trace-calls.ts'
import type { ConnectionAge, RateLimitTransport } from './transport.ts'
import { UnaryCall, type UnaryMethod } from './unary-call.ts'

/** Bytes of all messages together that are not whole yet. */
const UNFINISHED_BYTES_MAX = 64 * 1024 * 1024
/** A call without streams that nobody limits is over after this. */
const UNARY_MS_MAX = 30_000
/** How often what is due is looked after. */
const LOOK_EVERY_MS = 100
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

/** Makes the transport. */
export function createHttp2Transport(deps: CallDeps & ConnectionAge): RateLimitTransport {
  const health = createHealthService()
  const connections = new Set<Http2Connection>()
  const nowMs = () => performance.now()
  const methods = methodsOf(deps, health)
  let isLeaving = false
  let looking: NodeJS.Timeout | undefined
  const look = () => {
    const atMs = nowMs()
    for (const connection of connections) connection.look(atMs)
  }
  const begin = (stream: CallStream, fields: readonly HeaderField[] | undefined) => {
    const head = parseCallHead(fields)
    if ('kind' in head) refuse(stream, head)
    else if (head.timeoutMs !== undefined) stream.untilMs = nowMs() + head.timeoutMs
    if (!('kind' in head)) (methods.get(head.path) ?? refuseMethod)(stream, head)
  }
  return {
    serve(socket) {
      if (socket instanceof Socket) socket.setNoDelay(true)
      const connection = openConnection(socket, deps, {
        begin,
        nowMs,
        onDefect: deps.onDefect,
        onGone: () => {
          connections.delete(connection)
          if (connections.size > 0) return
          clearInterval(looking)
          looking = undefined
        },
      })
      connections.add(connection)
      looking ??= setInterval(look, LOOK_EVERY_MS)
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
  deps: ConnectionDeps<Http2Connection>,
): Http2Connection {
  let timer: NodeJS.Timeout | undefined
  const connection = new Http2Connection(socket, {
    ...deps,
    onGone(gone) {
      clearTimeout(timer)
      deps.onGone(gone)
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
): ReadonlyMap<string, BeginCall> {
  const { onDefect } = deps
  const budget: Budget = { left: UNFINISHED_BYTES_MAX }
  const unary = (method: UnaryMethod): BeginCall => {
    const unaryDeps = { method, budget, onDefect }
    const methodFor = traceCalls(method)
    return (stream, head) => {
      if (head.timeoutMs === undefined) stream.untilMs = performance.now() + UNARY_MS_MAX
      const own = methodFor(head)
      const deps = own === method ? unaryDeps : { ...unaryDeps, method: own }
      stream.listener = new UnaryCall(deps, stream, head.packing)
    }
  }
  const streaming = (open: OpenReflection): BeginCall => {
    return (stream, { packing }) => {
      stream.listener = new StreamingCall({ open, budget, onDefect }, stream, packing)
    }
  }
  return new Map<string, BeginCall>([
    [METHOD, unary(answerCalls(deps))],
    [`${HEALTH}Check`, unary(health.check)],
    [`${HEALTH}List`, unary(health.list)],
    [`${HEALTH}Watch`, streaming(health.watch)],
    ...[...createReflection()].map(([path, open]) => [path, streaming(open)] as const),
  ])
}

function refuse(stream: CallStream, head: HeadFault): void {
  if (head.kind === 'malformed') stream.reset(errorCodes.protocol)
  else if (head.kind === 'http') stream.refuseHttp(head.status)
  else stream.refuse(head.fault, [['grpc-accept-encoding', packings.join(',')]])
  stream.done()
}

function refuseMethod(stream: CallStream): void {
  stream.refuse(unknownMethod)
  stream.done()
}
