// A client that sends an endless body and ignores the response.
import { setTimeout as sleep } from 'node:timers/promises'
import type { RawConnection } from './raw-http.ts'

/** One write: per second the client sends far more than a server may discard. */
const CHUNK = Buffer.alloc(64 * 1024, ' ')
const CHUNK_EVERY_MS = 5

/** Sends until the connection closes, at most `bytesMax`; returns the number of bytes sent. */
export async function sendUntilClosed(
  connection: RawConnection,
  bytesMax: number,
): Promise<number> {
  const { socket } = connection
  socket.on('error', () => undefined) // expected: the server closes the connection
  while (!socket.destroyed && socket.bytesWritten < bytesMax) {
    connection.send(CHUNK)
    await sleep(CHUNK_EVERY_MS)
  }
  return socket.bytesWritten - socket.writableLength
}
