// A TCP proxy in front of one server that simulates network faults: delays, resets,
// refused connections, black holes, and dropped responses. Each connection has a bounded buffer.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../dependencies/free-ports.ts'
import { createCarrier, type Faults } from './fault-carrier.ts'

/** The address of a listener. */
interface Address {
  readonly host: string
  readonly port: number
}

/** Which responses are dropped. */
interface DropOptions {
  /** The number of responses. @default all until `heal` */
  readonly count?: number
  /** Whether this response is dropped and counted. @default every response */
  readonly matches?: (message: Buffer) => boolean
}

/** A running proxy. Each fault stays until `heal`, or until the next fault of its kind. */
export interface FaultProxy extends Address {
  /** Delays every later response of the server. */
  delay(ms: number): void
  /** Resets every open connection; accepts new ones. */
  resetConnections(): void
  /** Resets every open connection, and closes the port: new connections are refused. */
  stopListening(): Promise<void>
  /** Forwards requests, drops responses. `heal` resets connections with a gap in the stream. */
  dropResponses(which?: DropOptions): void
  /** Forwards nothing in either direction; `heal` delivers the buffered bytes. */
  blackHole(): void
  /** Removes every fault. */
  heal(): Promise<void>
  /** The number of responses dropped so far. */
  droppedResponses(): number
  /** The number of open connections. */
  connections(): number
  close(): Promise<void>
}

/** The addresses of a proxy and its server, and the framing of the server's protocol. */
export interface FaultProxyOptions {
  /** @default a free port of 127.0.0.1 */
  readonly at?: Address
  readonly to: Address
  /**
   * The length of the message at the start of these bytes; undefined if it is not complete enough
   * to contain its length. With it, a response is one message, and its connection stays usable
   * after a drop; without it, a response is one chunk of the stream.
   */
  readonly messageLength?: (bytes: Buffer) => number | undefined
}

/** The length of the CQL frame (protocol version 4) at the start of these bytes. */
export function cqlFrameLength(bytes: Buffer): number | undefined {
  return bytes.length < 9 ? undefined : 9 + bytes.readUInt32BE(5)
}

interface Pair {
  readonly client: Socket
  readonly upstream: Socket
  readonly flush: () => void
  /** Whether a chunk of its response stream was dropped. */
  hasGap: boolean
}

/** Starts a proxy without faults. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const pairs = new Set<Pair>()
  let drop: { left: number; matches: (message: Buffer) => boolean } | undefined
  let droppedResponses = 0
  const faults: Faults = {
    delayMs: 0,
    isBlackHole: false,
    drops(message) {
      if (drop === undefined || drop.left === 0 || !drop.matches(message)) return false
      drop.left--
      droppedResponses++
      return true
    },
  }
  const serve = (client: Socket) => {
    const pair = join({ client, options, faults, onClose: () => pairs.delete(pair) })
    pairs.add(pair)
  }
  let server: Server | undefined = await listenAt(
    options.at ?? { host: '127.0.0.1', port: await freePort() },
    serve,
  )
  const { address: host, port } = server.address() as AddressInfo
  const reset = (which: (pair: Pair) => boolean = () => true) => {
    for (const { client, upstream } of [...pairs].filter(which)) {
      resetSocket(client)
      upstream.destroy()
    }
  }
  const stopListening = async () => {
    const closing = server
    server = undefined
    closing?.close()
    reset()
    if (closing !== undefined) await once(closing, 'close')
  }
  return {
    host,
    port,
    delay(ms) {
      faults.delayMs = ms
    },
    resetConnections: () => {
      reset()
    },
    stopListening,
    dropResponses({ count = Number.POSITIVE_INFINITY, matches = () => true } = {}) {
      drop = { left: count, matches }
    },
    blackHole() {
      faults.isBlackHole = true
    },
    async heal() {
      Object.assign(faults, { delayMs: 0, isBlackHole: false })
      drop = undefined
      reset(({ hasGap }) => hasGap)
      for (const { flush } of pairs) flush()
      server ??= await listenAt({ host, port }, serve)
    },
    droppedResponses: () => droppedResponses,
    connections: () => pairs.size,
    close: stopListening,
  }
}

async function listenAt({ host, port }: Address, serve: (client: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, serve)
  server.listen(port, host)
  await once(server, 'listening')
  return server
}

/** Connects a client to the server; when one of the two connections closes, so does the other. */
function join(given: {
  client: Socket
  options: FaultProxyOptions
  faults: Faults
  onClose: () => void
}): Pair {
  const { client, options, faults, onClose } = given
  const { to, messageLength } = options
  const upstream = connect({ ...to, allowHalfOpen: true, noDelay: true })
  for (const [socket, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    socket.on('error', () => {
      resetSocket(other)
    })
    socket.on('close', () => {
      if (other.destroyed) onClose()
      // After a graceful close, the buffer may still contain bytes for the other socket.
      else if (!socket.readableEnded) other.destroy()
    })
  }
  const requests = createCarrier({ from: client, to: upstream, faults, isDropped: () => false })
  const responses = createCarrier({
    from: upstream,
    to: client,
    faults,
    ...(messageLength !== undefined && { messageLength }),
    delayMs: () => faults.delayMs,
    isDropped(message) {
      const isDropped = faults.drops(message)
      if (isDropped && messageLength === undefined) pair.hasGap = true
      // The client would misread a stream that continues after a gap.
      return isDropped || pair.hasGap
    },
  })
  const pair: Pair = {
    client,
    upstream,
    hasGap: false,
    flush() {
      requests()
      responses()
    },
  }
  return pair
}

/** Resets a connection; after `end`, destroys it: Node.js 24 would never close its handle. */
function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
