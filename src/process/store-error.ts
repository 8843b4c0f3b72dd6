// The one error that stores throw for an operating fault. What a store expects to happen (a code
// is taken, a row is absent) is a return value and never this.

/** What is known of a write that failed: certainly not done, or unknown. Reads are `not-done`. */
export type FailedOutcome = 'not-done' | 'unknown'

/** A store could not answer. `cause` is for the log, never for a client. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly outcome: FailedOutcome

  constructor(message: string, options: { outcome: FailedOutcome; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.outcome = options.outcome
  }
}
