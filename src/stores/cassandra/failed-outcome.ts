// Classifies the outcome of a failed statement by the shape of the driver's error. Does not import
// the driver: the shapes were observed, and checked in its source (4.10, request-execution.js).
import type { FailedOutcome } from '../../resilience/store-error.ts'

/** A failed statement's outcome; a defect of this code is rethrown unchanged. */
export type Failure = FailedOutcome | 'defect'

/**
 * Error codes with which a server rejects a statement before executing it: bad credentials and
 * errors in the statement itself. "Unavailable" (0x1000) and "overloaded" (0x1001) are not
 * included: a server also returns both after deciding a claim, while committing it.
 */
const NOT_EXECUTED: ReadonlySet<unknown> = new Set([
  0x0100, // bad credentials
  0x2000, // syntax
  0x2100, // unauthorized
  0x2200, // invalid
  0x2300, // configuration
  0x2400, // already exists
  0x2500, // unprepared
])

/** Errors caused only by wrong arguments from this code; the statement was not sent. */
const DEFECTS: ReadonlySet<unknown> = new Set(['TypeError', 'RangeError', 'ArgumentError'])

/**
 * The outcome after `error`. A failed write may have been applied, and a failed read may succeed on
 * retry, unless the server rejected it or it was not sent. NoHostAvailableError means that no
 * connection was left to try: under a policy without retries the driver moves to another host only
 * if the statement was not written or not prepared on the server.
 */
export function failureOf(error: unknown): Failure {
  const { name, code } = shapeOf(error)
  if (DEFECTS.has(name)) return 'defect'
  if (name === 'ResponseError') return NOT_EXECUTED.has(code) ? 'not-done' : 'unknown'
  if (name === 'NoHostAvailableError' || name === 'AuthenticationError') return 'not-done'
  return 'unknown'
}

/** Errors that only the operator can fix: permissions, unknown data centers, invalid statements. */
const REJECTIONS: ReadonlySet<unknown> = new Set([0x2000, 0x2100, 0x2200, 0x2300])

const INVALID = 0x2200
const SERVER_ERROR = 0x0000

/** The server's message if it rejects the statement permanently. */
export function rejectionOf(error: unknown): string | undefined {
  const { name, code, message } = shapeOf(error)
  return name === 'ResponseError' && REJECTIONS.has(code) ? message : undefined
}

/**
 * Whether a node cannot read a table that it already lists, because the table is being created: it
 * rejects the statement as invalid, or fails with an exception.
 */
export function isNewTableError(error: unknown): boolean {
  const { name, code, message } = shapeOf(error)
  if (name !== 'ResponseError') return false
  return code === INVALID || (code === SERVER_ERROR && message.includes('Unknown CF '))
}

/** Name, code and message of any thrown value. */
export function shapeOf(error: unknown): { name: unknown; code: unknown; message: string } {
  if (typeof error !== 'object' || error === null)
    return { name: undefined, code: undefined, message: String(error) }
  const { name, code, message } = error as { name?: unknown; code?: unknown; message?: unknown }
  return { name, code, message: typeof message === 'string' ? message : '' }
}
