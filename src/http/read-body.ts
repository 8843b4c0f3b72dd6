// Reads a request's body whole, up to a bound.
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Bytes of the largest body that is read. */
export const BODY_BYTES_MAX = 16 * 1024

/** The body, that it is too large, or that the client went away before its end. */
export type ReadBody = Buffer | 'too-large' | 'aborted'

const expectsContinue = /(?:^|\W)100-continue(?:$|\W)/i

/**
 * Reads the body, which a client may have to be asked for. One whose declared length is over the
 * bound is not read at all; what is left unread, the listener discards.
 */
export function readBody(req: IncomingMessage, res: ServerResponse): Promise<ReadBody> {
  const { headers, httpVersion } = req
  if (Number(headers['content-length'] ?? 0) > BODY_BYTES_MAX) return Promise.resolve('too-large')
  if (expectsContinue.test(headers.expect ?? '') && httpVersion === '1.1') res.writeContinue()
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    req.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= BODY_BYTES_MAX) {
        chunks.push(chunk)
        return
      }
      req.removeAllListeners('data')
      req.pause()
      resolve('too-large')
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
