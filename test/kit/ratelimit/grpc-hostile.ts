// Hostile clients of a gRPC listener: every call must have an allowed result, whatever else they
// send. The short form runs in grpc-hostile.test.ts, the long one as a fault test.
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
const AT_ONCE = 16
const END_MS_MAX = 10_000
/** The memory bound of a node:http2 session; with less it resets calls with large bodies itself. */
const CLIENT_MB_MAX = 256
/** Share of the batches with a connection that is not HTTP/2. */
const BROKEN = 0.2

/** The number of calls by their result. */
export interface HostileCounts {
  calls: number
  broken: number
  readonly byEnd: Map<string, number>
}

/** Sends calls to `port` of loopback. Throws at the first result that is not allowed. */
export async function hostileCalls(given: {
  readonly port: number
  readonly calls: number
  readonly seed: number
}): Promise<HostileCounts> {
  const counts: HostileCounts = { calls: 0, broken: 0, byEnd: new Map() }
  const workers = Array.from({ length: WORKERS }, async (_, i) => {
    const random = createRandom(given.seed + i)
    await callAll({ random, port: given.port, counts, calls: given.calls / WORKERS })
  })
  await Promise.all(workers)
  return counts
}

/** The counts as one line. */
export function renderHostileCounts({ calls, broken, byEnd }: HostileCounts): string {
  const ends = [...byEnd].sort().map(([end, count]) => `${end}: ${count}`)
  return `${calls} calls, ${broken} broken connections; ${ends.join(', ')}`
}

async function callAll(given: {
  random: Random
  port: number
  counts: HostileCounts
  calls: number
}): Promise<void> {
  const { random, port, counts } = given
  let session = sessionTo(port)
  for (let sent = 0; sent < given.calls; sent += AT_ONCE) {
    if (random.chance(BROKEN)) {
      await sendBroken(port, brokenConnection(random))
      counts.broken += 1
    }
    // A listener may close the connection of a client that resets too much.
    if (session.closed || session.destroyed) session = sessionTo(port)
    const batch = Array.from({ length: AT_ONCE }, async () => {
      const call = nextHostileCall(random)
      const end = await withinDeadline(
        `the result of ${call.name}`,
        endOf(session, call),
        END_MS_MAX,
      )
      if (!call.results.includes(end) && !isSessionClosed(session, end)) {
        throw new Error(`${call.name} resulted in ${end}, not in ${call.results.join(' or ')}`)
      }
      counts.calls += 1
      counts.byEnd.set(end, (counts.byEnd.get(end) ?? 0) + 1)
    })
    await Promise.all(batch)
  }
  session.destroy()
}

function isSessionClosed(session: ClientHttp2Session, end: string): boolean {
  return end === 'closed' && (session.closed || session.destroyed)
}

function sessionTo(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: CLIENT_MB_MAX })
  session.on('error', () => undefined) // its calls report it
  return session
}

function endOf(session: ClientHttp2Session, call: HostileCall): Promise<string> {
  return new Promise((resolve) => {
    let stream: ClientHttp2Stream
    try {
      stream = session.request(call.headers)
    } catch {
      resolve('closed')
      return
    }
    let end = 'closed'
    const note = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      const grpcStatus = headers['grpc-status']
      if (grpcStatus !== undefined) end = `grpc ${String(grpcStatus)}`
      else if (headers[':status'] !== 200) end = `http ${String(headers[':status'])}`
    }
    stream.on('response', note)
    stream.on('trailers', note)
    stream.on('error', () => undefined) // 'close' follows
    stream.on('close', () => {
      resolve(end)
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
