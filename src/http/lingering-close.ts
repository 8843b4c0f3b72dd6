// Lingering close, for a connection whose client may still be sending. After an immediate close the
// kernel resets a connection with unread bytes, which can discard the response.
import type { Duplex } from 'node:stream'

/** Maximum input that is discarded after the last response. */
const DISCARDED_BYTES_MAX = 64 * 1024
/**
 * Maximum time for which input is discarded; also the time that a body of bounded length has to
 * complete after its response.
 */
export const DISCARD_MS_MAX = 2000

const closing = new WeakSet<Duplex>()

/** Stops reading until `releaseReading`, although Node.js resumes a socket after each request. */
export function holdReading(socket: Duplex): void {
  socket.resume = () => socket
  socket.pause()
}

/** Continues reading after `holdReading`. */
export function releaseReading(socket: Duplex): void {
  Reflect.deleteProperty(socket, 'resume') // the method of the prototype remains
  socket.resume()
}

/** Whether the last response of a connection has been written. */
export function isClosing(socket: Duplex): boolean {
  return closing.has(socket)
}

/**
 * Flushes the writes and sends FIN, discards further input within bounds, and closes. Later bytes
 * are not parsed as requests.
 */
export function lingeringClose(socket: Duplex): void {
  if (closing.has(socket) || socket.destroyed) return
  closing.add(socket)
  let discarded = 0
  socket.removeAllListeners('data') // the parser's
  socket.on('data', ({ length }: Buffer) => {
    discarded += length
    if (discarded >= DISCARDED_BYTES_MAX) socket.destroy()
  })
  // Paused until the response is sent; destroyStalled closes a client that does not read it. Paused
  // only after the parser is detached: a pause would stop the parser's own reads permanently.
  socket.pause()
  socket.end(() => {
    const timer = setTimeout(() => {
      socket.destroy()
    }, DISCARD_MS_MAX)
    socket.once('close', () => {
      clearTimeout(timer)
    })
    releaseReading(socket)
  })
}
