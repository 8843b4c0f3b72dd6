// A client that sends a body without end, whatever the server responds.
import { setTimeout as sleep } from 'node:timers/promises'
import type { RawConnection } from './raw-http.ts'

/** What it sends at a time: far more in a second than a server may discard. */
export const CHUNK = Buffer.alloc(16 * 1024, ' ')
const CHUNK_EVERY_MS = 5

/** Sends until the connection is closed, `bytesMax` at most; returns the bytes that were taken. */
export async function pour(connection: RawConnection, bytesMax: number): Promise<number> {
  const { socket } = connection
  socket.on('error', () => undefined) // the end that is waited for
  while (!socket.destroyed && socket.bytesWritten < bytesMax) {
    connection.send(CHUNK)
    await sleep(CHUNK_EVERY_MS)
  }
  return socket.bytesWritten - socket.writableLength
}
