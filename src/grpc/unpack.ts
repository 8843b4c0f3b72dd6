// Unpacks messages of gRPC, to a bounded size, beside the event loop and few at once: little bytes
// may unpack to much. Touches no socket.
import { gunzip, inflate } from 'node:zlib'
import type { Packing } from './call-head.ts'
import type { CallFault } from './http2/status-codes.ts'

/** Bytes of the largest message, unpacked. */
const UNPACKED_BYTES_MAX = 4 * 1024 * 1024
/** Unpacked in one go; the engine's own 16 KiB are many turns of the event loop. */
const CHUNK_BYTES = 256 * 1024
/** Messages unpacked at once in this process, as many as the engine has threads for it. */
const AT_ONCE = 4
let running = 0
/** Those that wait for their turn, the first first; as many at most as there are calls. */
const waiting: (() => void)[] = []
const options = { maxOutputLength: UNPACKED_BYTES_MAX, chunkSize: CHUNK_BYTES }

const tooLarge: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: `a message may have at most ${UNPACKED_BYTES_MAX} bytes when it is unpacked`,
}
const broken: CallFault = { code: 'INTERNAL', details: 'a message cannot be unpacked' }
const dropped: CallFault = { code: 'INTERNAL', details: 'the call is over' }
const notSaid: CallFault = {
  code: 'INTERNAL',
  details: 'a message is packed but grpc-encoding does not say how',
}
const unknownFlag: CallFault = {
  code: 'INTERNAL',
  details: 'a message begins with an unknown flag',
}

/**
 * Unpacks a message whose flag is not 0, in its turn; may give a fault. Never rejects. A message
 * that is no longer wanted in its turn is dropped.
 */
export function unpack(given: {
  readonly message: Buffer
  readonly flag: number
  readonly packing: Packing
  readonly isWanted: () => boolean
}): CallFault | Promise<Buffer | CallFault> {
  const { message, flag, packing, isWanted } = given
  if (flag !== 1) return unknownFlag
  if (packing === 'identity') return notSaid
  const unpacker = packing === 'gzip' ? gunzip : inflate
  return new Promise((resolve) => {
    const goOn = () => {
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else setImmediate(next) // a queue of unwanted messages is no recursion
    }
    const begin = () => {
      if (!isWanted()) {
        goOn()
        resolve(dropped)
        return
      }
      unpacker(message, options, (error: NodeJS.ErrnoException | null, bytes) => {
        goOn()
        if (error === null) resolve(bytes)
        else resolve(error.code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge : broken)
      })
    }
    if (running >= AT_ONCE) waiting.push(begin)
    else {
      running += 1
      begin()
    }
  })
}
