// What a client does that HTTP/2 does not allow, and that ends its connection.
import type { ErrorCode } from './frames.ts'

/** The connection has to end with this code. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, why: string) {
    super(why)
    this.code = code
  }
}
