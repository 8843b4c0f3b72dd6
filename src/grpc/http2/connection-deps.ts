// What a connection of HTTP/2 needs of the server that opens it.
import type { CallStream } from './call-stream.ts'
import type { HeaderField } from './hpack-decoder.ts'

/** What a connection works with; `Connection` is the connection itself. */
export interface ConnectionDeps<Connection> {
  /** Gives a stream whose headers came its listener, or refuses it; no fields: too long. */
  readonly begin: (stream: CallStream, fields: readonly HeaderField[] | undefined) => void
  /** Monotonic. */
  readonly nowMs: () => number
  /** Told of errors that are no client's. */
  readonly onDefect: (error: unknown) => void
  /** Told when the connection is gone. */
  readonly onGone: (connection: Connection) => void
}
