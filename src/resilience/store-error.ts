// The only error that stores throw for an operational fault. Expected results (a code is taken, a
// row is absent) are return values, never this error.

/**
 * The outcome of a failed call. `not-done`: it had no effect, and an immediate retry would fail,
 * because the store is full or unavailable, or rejects the call. `unknown`: a write may have taken
 * effect; a read may be retried.
 */
export type FailedOutcome = 'not-done' | 'unknown'

/** A store call failed. `cause` is for the log, never for a client. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly outcome: FailedOutcome

  constructor(message: string, options: { outcome: FailedOutcome; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.outcome = options.outcome
  }
}

/** The store rejects a value of a write permanently: every retry would fail. */
export class RejectedWriteError extends StoreError {
  /** Which value, and what is allowed; for the client. */
  readonly reason: string

  constructor(reason: string, cause: unknown) {
    super(`The store rejects the write: ${reason}`, { outcome: 'not-done', cause })
    this.reason = reason
  }
}
