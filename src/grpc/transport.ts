// The interface of a transport: it serves HTTP/2 and gRPC on connections. The listener accepts the
// connections and terminates TLS, so that transports are interchangeable.
import type { Duplex } from 'node:stream'

/** Serves gRPC on given connections. */
export interface RateLimitTransport {
  /** Serves a connection, after its TLS handshake if any, until either side closes it. */
  readonly serve: (connection: Duplex) => void
  /** Sets the status of health checks: whether the limiter can decide calls; initially false. */
  setServing(isServing: boolean): void
  /** Shuts down gracefully: closes each connection once its calls in flight are complete. */
  close(): void
}

/** Limits on the age of connections. */
export interface ConnectionAge {
  /** Age at which a connection is shut down gracefully, ±10 %; 0: never. */
  readonly ageMsMax: number
  /** Time from the start of the shutdown until the connection is destroyed. */
  readonly graceMs: number
}
