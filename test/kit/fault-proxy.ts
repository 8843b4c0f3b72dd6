// A TCP proxy before one server that simulates network faults: delays, resets, refused connections,
// black holes, and lost responses to received requests. Buffers are bounded per connection.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createCarrier, type Faults } from './fault-carrier.ts'

/** Where something listens. */
interface Address {
  readonly host: string
  readonly port: number
}

/** Which answers get lost. */
interface Swallow {
  /** How many; without it all, until `heal`. */
  readonly answers?: number
  /** Whether this one counts; without it every one. */
  readonly isSuch?: (message: Buffer) => boolean
}

/** A running proxy. Every fault stays until `heal`, and the last one of a kind holds. */
export interface FaultProxy extends Address {
  /** Delays every response of the server from now on. */
  delay(ms: number): void
  /** Resets every connection; new ones are taken. */
  cut(): void
  /** Resets every connection and refuses new ones, as if the port were closed. */
  refuse(): Promise<void>
  /** Requests pass, responses are dropped. `heal` resets connections with a gap in the stream. */
  dropResponses(which?: Swallow): void
  /** Nothing passes in either direction; `heal` delivers what was buffered. */
  blackHole(): void
  /** Removes every fault. */
  heal(): Promise<void>
  /** How many answers were lost so far. */
  droppedResponses(): number
  /** How many connections there are now. */
  connections(): number
  close(): Promise<void>
}

/** How to start one. */
export interface FaultProxyOptions {
  /** Without it a free port of 127.0.0.1. */
  readonly at?: Address
  readonly to: Address
  /**
   * The length of the message that these bytes begin with, undefined while that cannot be seen.
   * With it an answer is one message, and a connection outlives the loss of some; without it an
   * answer is whatever comes at once.
   */
  readonly messageLength?: (bytes: Buffer) => number | undefined
}

/** Length of the frame of Cassandra's protocol, version 4, that these bytes begin with. */
export function cqlFrameLength(bytes: Buffer): number | undefined {
  return bytes.length < 9 ? undefined : 9 + bytes.readUInt32BE(5)
}

interface Pair {
  readonly client: Socket
  readonly part: Socket
  readonly flush: () => void
  hasLost: boolean
}

/** Starts one, without any fault. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const pairs = new Set<Pair>()
  let dropResponses: { left: number; isSuch: (message: Buffer) => boolean } | undefined
  let droppedResponses = 0
  const faults: Faults = {
    delayMs: 0,
    isBlack: false,
    takes(message) {
      if (dropResponses === undefined || dropResponses.left === 0 || !dropResponses.isSuch(message))
        return false
      dropResponses.left--
      droppedResponses++
      return true
    },
  }
  const serve = (client: Socket) => {
    const pair = join({ client, options, faults, onClose: () => pairs.delete(pair) })
    pairs.add(pair)
  }
  let server: Server | undefined = await listenAt(
    options.at ?? { host: '127.0.0.1', port: 0 },
    serve,
  )
  const { address: host, port } = server.address() as AddressInfo
  const cut = (which: (pair: Pair) => boolean = () => true) => {
    for (const { client, part } of [...pairs].filter(which)) {
      client.resetAndDestroy()
      part.destroy()
    }
  }
  const stopListening = async () => {
    const closing = server
    server = undefined
    closing?.close()
    cut()
    if (closing !== undefined) await once(closing, 'close')
  }
  return {
    host,
    port,
    delay(ms) {
      faults.delayMs = ms
    },
    cut: () => {
      cut()
    },
    refuse: stopListening,
    dropResponses({ answers = Number.POSITIVE_INFINITY, isSuch = () => true } = {}) {
      dropResponses = { left: answers, isSuch }
    },
    blackHole() {
      faults.isBlack = true
    },
    async heal() {
      Object.assign(faults, { delayMs: 0, isBlack: false })
      dropResponses = undefined
      cut(({ hasLost }) => hasLost)
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

/** Joins a client with the part; when one goes, the other goes too. */
function join(given: {
  client: Socket
  options: FaultProxyOptions
  faults: Faults
  onClose: () => void
}): Pair {
  const { client, options, faults, onClose } = given
  const { to, messageLength } = options
  const part = connect({ ...to, allowHalfOpen: true, noDelay: true })
  for (const [socket, other] of [
    [client, part],
    [part, client],
  ] as const) {
    socket.on('error', () => other.resetAndDestroy())
    socket.on('close', () => {
      if (other.destroyed) onClose()
      // One that ended in order may have said things that are still to be handed on.
      else if (!socket.readableEnded) other.destroy()
    })
  }
  const requests = createCarrier({ from: client, to: part, faults, isLost: () => false })
  const answers = createCarrier({
    from: part,
    to: client,
    faults,
    ...(messageLength !== undefined && { messageLength }),
    delayMs: () => faults.delayMs,
    isLost(message) {
      const isLost = faults.takes(message)
      if (isLost && messageLength === undefined) pair.hasLost = true
      // The rest of a stream that lost a part would be read as something else.
      return isLost || pair.hasLost
    },
  })
  const pair: Pair = {
    client,
    part,
    hasLost: false,
    flush() {
      requests()
      answers()
    },
  }
  return pair
}
