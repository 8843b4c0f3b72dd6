// What carries calls between connections and their answers. The listener accepts connections and
// speaks TLS, so a transport only speaks HTTP/2 and gRPC on them, and another can take its place.
import type { Duplex } from 'node:stream'

/** A server of gRPC on connections that it is given. */
export interface RateLimitTransport {
  /** Serves a connection, over TLS one whose handshake is done, until either side ends it. */
  readonly serve: (connection: Duplex) => void
  /** Tells health checks whether calls can be decided; at first they cannot. */
  setServing(isServing: boolean): void
  /** Takes no more calls; ends each connection when the calls under way on it are answered. */
  close(): void
}

/** How long connections live. */
export interface ConnectionAge {
  /** Until a client is told to make a new connection, give or take a tenth; 0: never. */
  readonly ageMsMax: number
  /** How long after that the connection is cut. */
  readonly graceMs: number
}
