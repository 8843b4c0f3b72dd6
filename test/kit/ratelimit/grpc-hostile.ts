// Hostile clients of a gRPC listener: every call must have an allowed result. The short form runs
// in grpc-hostile.test.ts, the long form as `npm run storm -- hostile`.
import { connect as connectSocket } from 'node:net'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2'
import { brokenConnection, type HostileCall, nextHostileCall } from './grpc-hostile-cases.ts'
import { createRandom, type Random } from '../random.ts'
import { withinDeadline } from '../wait-for.ts'

const WORKERS = 8
const BATCH = 16
const RESULT_MS_MAX = 10_000
/** The memory limit of a node:http2 session; a smaller one would reset calls with large bodies. */
const CLIENT_MB_MAX = 256
/** The share of batches with a connection that is not HTTP/2. */
const BROKEN = 0.2

/** The number of calls, in total and by result. */
export interface HostileCounts {
  calls: number
  broken: number
  readonly byResult: Map<string, number>
}

/** Sends calls to `port` of loopback. Throws at the first result that is not allowed. */
export async function hostileCalls(given: {
  readonly port: number
  readonly calls: number
  readonly seed: number
}): Promise<HostileCounts> {
  const counts: HostileCounts = { calls: 0, broken: 0, byResult: new Map() }
  const workers = Array.from({ length: WORKERS }, async (_, i) => {
    const random = createRandom(given.seed + i)
    await callAll({ random, port: given.port, counts, calls: given.calls / WORKERS })
  })
  await Promise.all(workers)
  return counts
}

/** Renders the counts as one line. */
export function renderHostileCounts({ calls, broken, byResult }: HostileCounts): string {
  const results = [...byResult].sort().map(([result, count]) => `${result}: ${count}`)
  return `${calls} calls, ${broken} broken connections; ${results.join(', ')}`
}

async function callAll(given: {
  random: Random
  port: number
  counts: HostileCounts
  calls: number
}): Promise<void> {
  const { random, port, counts } = given
  let session = sessionTo(port)
  for (let sent = 0; sent < given.calls; sent += BATCH) {
    if (random.chance(BROKEN)) {
      await sendBroken(port, brokenConnection(random))
      counts.broken += 1
    }
    // A listener may close the connection of a client that resets too much.
    if (session.closed || session.destroyed) session = sessionTo(port)
    const batch = Array.from({ length: BATCH }, async () => {
      const call = nextHostileCall(random)
      const result = await withinDeadline(
        `the result of ${call.name}`,
        resultOf(session, call),
        RESULT_MS_MAX,
      )
      if (!call.results.includes(result) && !isSessionClosed(session, result)) {
        throw new Error(`${call.name} resulted in ${result}, not in ${call.results.join(' or ')}`)
      }
      counts.calls += 1
      counts.byResult.set(result, (counts.byResult.get(result) ?? 0) + 1)
    })
    await Promise.all(batch)
  }
  session.destroy()
}

function isSessionClosed(session: ClientHttp2Session, result: string): boolean {
  return result === 'closed' && (session.closed || session.destroyed)
}

function sessionTo(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: CLIENT_MB_MAX })
  session.on('error', () => undefined) // its calls report the error
  return session
}

function resultOf(session: ClientHttp2Session, call: HostileCall): Promise<string> {
  return new Promise((resolve) => {
    let stream: ClientHttp2Stream
    try {
      stream = session.request(call.headers)
    } catch {
      resolve('closed')
      return
    }
    let result = 'closed'
    const readStatus = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      const grpcStatus = headers['grpc-status']
      if (grpcStatus !== undefined) result = `grpc ${String(grpcStatus)}`
      else if (headers[':status'] !== 200) result = `http ${String(headers[':status'])}`
    }
    stream.on('response', readStatus)
    stream.on('trailers', readStatus)
    stream.on('error', () => undefined) // 'close' follows
    stream.on('close', () => {
      resolve(result)
    })
    stream.resume()
    if (call.isReset) {
      stream.write(call.body)
      stream.close(8)
    } else stream.end(call.body)
  })
}

/**
 * Connects, sends the bytes, and waits until the server closes the connection, or for a timeout.
 */
function sendBroken(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectSocket({ port, host: '127.0.0.1' }, () => {
      socket.end(bytes)
    })
    socket.setTimeout(1000, () => socket.destroy())
    socket.on('error', () => undefined) // 'close' follows
    socket.on('close', () => {
      resolve()
    })
    socket.resume()
  })
}
