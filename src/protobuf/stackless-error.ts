// Errors of calls that a client can send at any rate.

/** An error without a stack trace, which would take most of the time of a malformed call. */
export class StacklessError extends Error {
  constructor(message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
  }
}
