// The one error that stores throw for an operating fault. What a store expects to happen (a code
// is taken, a row is absent) is a return value and never this.

/**
 * What is known of a call that failed. `not-done`: it certainly did nothing, and the store will not
 * do it now: it is full, unavailable, or rejects it. `unknown`: a write may have been done, and a
 * read may succeed when it is retried.
 */
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
