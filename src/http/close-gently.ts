// The end of a connection whose client may still be sending. If it were closed at once, the system
// would answer the bytes that are not read by a reset, which can take the response with it.
import type { Duplex } from 'node:stream'

/** What is read and discarded after the last response, and for how long. */
const DISCARDED_BYTES_MAX = 64 * 1024
/** Also how long a body of bounded length may take to end after its response. */
export const DISCARD_MS_MAX = 2000

const closing = new WeakSet<Duplex>()

/** Whether the last response of a connection has been written. */
export function isClosing(socket: Duplex): boolean {
  return closing.has(socket)
}

/**
 * Sends what has been written and the end of it, discards what still comes within bounds, and
 * closes. Nothing that comes is taken for a request any more.
 */
export function closeGently(socket: Duplex): void {
  if (closing.has(socket) || socket.destroyed) return
  closing.add(socket)
  let discarded = 0
  socket.pause() // until the response is out: a client that takes none of it is cut as stalled
  socket.removeAllListeners('data') // the parser's
  socket.on('data', ({ length }: Buffer) => {
    discarded += length
    if (discarded >= DISCARDED_BYTES_MAX) socket.destroy()
  })
  socket.end(() => {
    const timer = setTimeout(() => {
      socket.destroy()
    }, DISCARD_MS_MAX)
    socket.once('close', () => {
      clearTimeout(timer)
    })
    socket.resume()
  })
}
