// The dependencies of an HTTP/2 connection: its call handler, its clock, and its share of the
// process bounds.
import type { CallStream } from './call-stream.ts'
import type { HeaderField } from './hpack-decoder.ts'
import type { Allowances } from './process-bounds.ts'
import type { Turns } from './turns.ts'

/** The dependencies of an HTTP/2 connection. */
export interface ConnectionDeps {
  /** Sets a new stream's listener, or rejects it; `fields` is undefined if they are too long. */
  readonly startCall: (stream: CallStream, fields: readonly HeaderField[] | undefined) => void
  /** Monotonic. */
  readonly nowMs: () => number
  /** Called with errors that no client caused. */
  readonly onDefect: (error: unknown) => void
  /** The connection's budgets by kind. */
  readonly share: Allowances
  readonly address: string
  readonly turns: Turns
  /** Called when the connection is closed. */
  readonly onClose: () => void
}
