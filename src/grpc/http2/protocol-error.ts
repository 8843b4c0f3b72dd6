// A connection error (RFC 9113 §5.4.1): the client violates the protocol or a bound, or the server
// has a defect.
import { type ErrorCode, errorCodes } from './frames.ts'

/** A connection error; `code` is the error code of GOAWAY. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, reason: string) {
    super(reason)
    this.code = code
  }
}

/** The error of a connection that is closed because of a defect of the server. */
export const internalError = new ProtocolError(errorCodes.internal, 'internal error')
