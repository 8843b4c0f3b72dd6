// What a connection of HTTP/2 works with: who takes its calls, its clock, and its share of what
// the process holds.
import type { CallStream } from './call-stream.ts'
import type { HeaderField } from './hpack-decoder.ts'
import type { Allowances } from './process-bounds.ts'
import type { Turns } from './turns.ts'

/** What a connection works with. */
export interface ConnectionDeps {
  /** Gives a stream whose headers came its listener, or refuses it; no fields: too long. */
  readonly begin: (stream: CallStream, fields: readonly HeaderField[] | undefined) => void
  /** Monotonic. */
  readonly nowMs: () => number
  /** Told of errors that are no client's. */
  readonly onDefect: (error: unknown) => void
  /** What the connection holds of the sums of the process. */
  readonly share: Allowances
  readonly address: string
  readonly turns: Turns
  /** Told when the connection is gone. */
  readonly onGone: () => void
}
