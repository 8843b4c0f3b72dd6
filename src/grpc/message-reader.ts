// Puts messages of gRPC together from the parts that come. What is kept of those not whole is
// bounded together, and takes at most twice its bytes. Reads no message.
import { unpack } from './unpack.ts'
import type { Packing } from './call-head.ts'
import type { Budget } from './http2/process-bounds.ts'
import type { CallFault } from './http2/status-codes.ts'

/** Bytes of the largest message that is read, also unpacked. */
export const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** A flag whether the message is packed, and its length in 4. */
const HEAD_BYTES = 5
const BYTES_AT_FIRST = 256
const NOTHING = Buffer.alloc(0)
/** Buffers from this size on are reused: to allocate and collect them costs more than to copy. */
const REUSED_BYTES_MIN = 16 * 1024
/** Kept for reuse by all readers of the process, at most. */
const UNUSED_BYTES_MAX = 16 * 1024 * 1024

const tooLarge: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: `a message may have at most ${MESSAGE_BYTES_MAX} bytes`,
}
const tooMuch: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many messages are under way that are not whole',
}

/** The message, if these bytes are one whole message that is not packed. */
export function wholeMessage(bytes: Buffer): Buffer | undefined {
  if (bytes.length < HEAD_BYTES || bytes[0] !== 0) return undefined
  return bytes.readUInt32BE(1) === bytes.length - HEAD_BYTES
    ? bytes.subarray(HEAD_BYTES)
    : undefined
}

/** Buffers that no message needs now, by their size, which is a power of two. */
const unused = new Map<number, Buffer[]>()
let unusedBytes = 0

/** A buffer of this size, a power of two, with any content. */
function allocate(size: number): Buffer {
  const buffer = unused.get(size)?.pop()
  if (buffer === undefined) return Buffer.allocUnsafeSlow(size)
  unusedBytes -= size
  return buffer
}

/** Keeps a buffer that nothing refers to any more for the next message. */
function release(buffer: Buffer): void {
  const { length } = buffer
  if (length < REUSED_BYTES_MIN || unusedBytes + length > UNUSED_BYTES_MAX) return
  unusedBytes += length
  const others = unused.get(length)
  if (others === undefined) unused.set(length, [buffer])
  else others.push(buffer)
}

/** The messages of one call. */
export class MessageReader {
  private readonly budget: Budget
  private readonly packing: Packing
  private bytes: Buffer = NOTHING
  private length = 0

  constructor(budget: Budget, packing: Packing) {
    this.budget = budget
    this.packing = packing
  }

  /** Bytes that are not part of a message that was given. */
  get rest(): number {
    return this.length
  }

  /** Bytes of the next message and its head; undefined while that is not known. */
  get nextBytes(): number | undefined {
    return this.length < HEAD_BYTES ? undefined : HEAD_BYTES + this.bytes.readUInt32BE(1)
  }

  /** Takes a part; what comes back is wrong with it. */
  add(part: Buffer): CallFault | undefined {
    const length = this.length + part.length
    if (length > this.bytes.length) {
      const size = Math.max(2 ** Math.ceil(Math.log2(length)), BYTES_AT_FIRST)
      if (!this.budget.take(size - this.bytes.length)) return tooMuch
      const larger = allocate(size)
      this.bytes.copy(larger, 0, 0, this.length)
      release(this.bytes)
      this.bytes = larger
    }
    part.copy(this.bytes, this.length)
    this.length = length
    return (this.nextBytes ?? 0) > MESSAGE_BYTES_MAX + HEAD_BYTES ? tooLarge : undefined
  }

  /**
   * The next message, unpacked, if it is whole; to be used before more is added. `isWanted` is
   * called when the turn of a message to be unpacked comes.
   */
  next(isWanted = () => true): Buffer | CallFault | Promise<Buffer | CallFault> | undefined {
    const { nextBytes } = this
    if (nextBytes === undefined || nextBytes > this.length) return undefined
    const flag = this.bytes[0] ?? 0
    const message = Buffer.from(this.bytes.subarray(HEAD_BYTES, nextBytes))
    this.bytes.copyWithin(0, nextBytes, this.length)
    this.length -= nextBytes
    return flag === 0 ? message : unpack({ message, flag, packing: this.packing, isWanted })
  }

  /** Keeps nothing any more. */
  clear(): void {
    this.budget.give(this.bytes.length)
    release(this.bytes)
    this.bytes = NOTHING
    this.length = 0
  }
}
