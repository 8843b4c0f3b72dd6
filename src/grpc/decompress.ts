// Decompresses gRPC messages in the thread pool. Bounds their size and concurrency, because a few
// bytes may expand to many. Touches no socket.
import { gunzip, inflate } from 'node:zlib'
import type { Encoding } from './call-headers.ts'
import type { CallFault } from './http2/status-codes.ts'

/** Maximum size of a decompressed message. */
const DECOMPRESSED_BYTES_MAX = 4 * 1024 * 1024
/** Size of a chunk of output: the default of 16 KiB would take many turns of the event loop. */
const CHUNK_BYTES = 256 * 1024
/** Maximum number of messages decompressed concurrently: the size of the thread pool. */
const CONCURRENT_MAX = 4
let running = 0
/** Queue of messages, which the message budgets of their connections bound. */
const waiting: (() => void)[] = []
const options = { maxOutputLength: DECOMPRESSED_BYTES_MAX, chunkSize: CHUNK_BYTES }

const tooLarge: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: `a decompressed message must have at most ${DECOMPRESSED_BYTES_MAX} bytes`,
}
const broken: CallFault = { code: 'INTERNAL', details: 'a message cannot be decompressed' }
const dropped: CallFault = { code: 'INTERNAL', details: 'the call is closed' }
const encodingMissing: CallFault = {
  code: 'INTERNAL',
  details: 'a message is compressed but grpc-encoding is missing',
}
const unknownFlag: CallFault = {
  code: 'INTERNAL',
  details: 'the compressed flag of a message must be 0 or 1',
}

/**
 * Decompresses a message whose compressed flag is not 0. Waits for a free thread, and drops the
 * message if `isWanted` then returns false. Resolves to a fault on error; never rejects.
 */
export function decompress(given: {
  readonly message: Buffer
  readonly flag: number
  readonly encoding: Encoding
  readonly isWanted: () => boolean
}): CallFault | Promise<Buffer | CallFault> {
  const { message, flag, encoding, isWanted } = given
  if (flag !== 1) return unknownFlag
  if (encoding === 'identity') return encodingMissing
  const decompressor = encoding === 'gzip' ? gunzip : inflate
  return new Promise((resolve) => {
    const runNext = () => {
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else setImmediate(next) // avoids recursion over a queue of unwanted messages
    }
    const start = () => {
      if (!isWanted()) {
        runNext()
        resolve(dropped)
        return
      }
      decompressor(message, options, (error: NodeJS.ErrnoException | null, bytes) => {
        runNext()
        if (error === null) resolve(bytes)
        else resolve(error.code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge : broken)
      })
    }
    if (running >= CONCURRENT_MAX) waiting.push(start)
    else {
      running += 1
      start()
    }
  })
}
