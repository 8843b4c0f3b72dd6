// Reads a request's body whole, up to a bound.
import type { IncomingMessage } from 'node:http'

/** Bytes of the largest body that is read. */
export const BODY_BYTES_MAX = 16 * 1024

/** The body, that it is too large, or that the client went away before its end. */
export type ReadBody = Buffer | 'too-large' | 'aborted'

/** Reads the body. What is over the bound is discarded, so that the answer reaches its client. */
export function readBody(req: IncomingMessage): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    req.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= BODY_BYTES_MAX) chunks.push(chunk)
      else resolve('too-large')
    })
    req.on('end', () => {
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
    })
    req.on('close', () => {
      resolve('aborted')
    })
    req.on('error', () => {
      resolve('aborted')
    })
  })
}
