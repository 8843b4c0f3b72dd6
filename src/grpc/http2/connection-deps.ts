// The dependencies of an HTTP/2 connection: its call handler, its clock, and its budgets within the
// bounds of the process.
import type { CallStream } from './call-stream.ts'
import type { HeaderField } from './hpack-decoder.ts'
import type { Budgets } from './process-bounds.ts'
import type { RoundRobinScheduler } from './round-robin-scheduler.ts'

/** The dependencies of an HTTP/2 connection. */
export interface ConnectionDeps {
  /** Sets the listener of a new stream, or rejects it; `fields` is undefined if too large. */
  readonly startCall: (stream: CallStream, fields: readonly HeaderField[] | undefined) => void
  /** The monotonic clock. */
  readonly nowMs: () => number
  /** Called with every internal error: a defect of the server. */
  readonly onDefect: (error: unknown) => void
  /** The connection's budgets by kind. */
  readonly budgets: Budgets
  readonly address: string
  readonly scheduler: RoundRobinScheduler
  /** Called when the connection is closed. */
  readonly onClose: () => void
}
