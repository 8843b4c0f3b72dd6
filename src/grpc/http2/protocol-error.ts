// A client's violation of HTTP/2 that is a connection error (RFC 9113 §5.4.1).
import type { ErrorCode } from './frames.ts'

/** The connection must be closed with this code. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, why: string) {
    super(why)
    this.code = code
  }
}
