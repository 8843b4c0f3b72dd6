// What is known of a statement that failed, by the shape of the driver's error. Knows no driver:
// shapes are as measured in research and read in its source (4.10, request-execution.js).
import type { FailedOutcome } from '../../resilience/store-error.ts'

/** What failed: a defect of ours is no operating fault, and is thrown as it is. */
export type Failure = FailedOutcome | 'defect'

/**
 * Codes by which a server refuses a statement before it begins it: bad credentials, and all that
 * it finds wrong with the statement itself. "Unavailable" (0x1000) and "overloaded" (0x1001) are
 * not among them: both are also said after a claim was decided, when it is being committed.
 */
const NOT_BEGUN: ReadonlySet<unknown> = new Set([
  0x0100, // bad credentials
  0x2000, // syntax
  0x2100, // unauthorized
  0x2200, // invalid
  0x2300, // configuration
  0x2400, // exists already
  0x2500, // unprepared
])

/** Errors that only wrong arguments of ours give; the statement was not sent. */
const DEFECTS: ReadonlySet<unknown> = new Set(['TypeError', 'RangeError', 'ArgumentError'])

/**
 * What is known after `error`. A write that failed may have been done, and a read may succeed when
 * it is retried, unless the server rejected it, or it was not sent: NoHostAvailableError comes only
 * when no connection was left to try; under a policy that retries nothing the driver goes on to
 * another host only with what it has not written or what the server had not prepared.
 */
export function failureOf(error: unknown): Failure {
  const { name, code } = shapeOf(error)
  if (DEFECTS.has(name)) return 'defect'
  if (name === 'ResponseError') return NOT_BEGUN.has(code) ? 'not-done' : 'unknown'
  if (name === 'NoHostAvailableError' || name === 'AuthenticationError') return 'not-done'
  return 'unknown'
}

/** What only the operator can mend: rights, unknown data centers, statements that are not taken. */
const REFUSALS: ReadonlySet<unknown> = new Set([0x2000, 0x2100, 0x2200, 0x2300])

/** The server's words where it refuses a statement, however often it is repeated. */
export function refusalOf(error: unknown): string | undefined {
  const { name, code, message } = shapeOf(error)
  return name === 'ResponseError' && REFUSALS.has(code) ? message : undefined
}

/** What can be told of any error. */
export function shapeOf(error: unknown): { name: unknown; code: unknown; message: string } {
  if (typeof error !== 'object' || error === null)
    return { name: undefined, code: undefined, message: String(error) }
  const { name, code, message } = error as { name?: unknown; code?: unknown; message?: unknown }
  return { name, code, message: typeof message === 'string' ? message : '' }
}
