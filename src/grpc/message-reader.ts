// Assembles gRPC messages from chunks. The memory of incomplete messages is bounded in total; it is
// at most twice the size of each, but at least INITIAL_BYTES. Does not parse messages.
import { decompress } from './decompress.ts'
import type { Encoding } from './call-headers.ts'
import type { Budget } from './http2/process-bounds.ts'
import type { CallFault } from './http2/status-codes.ts'

/** Maximum size of a message, both as received and decompressed. */
export const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** The prefix of a message: its compressed flag, and its length in 4 bytes. */
const PREFIX_BYTES = 5
const INITIAL_BYTES = 256
const EMPTY = Buffer.alloc(0)
/** Buffers of at least this size are reused: allocation and collection cost more than a copy. */
const REUSED_BYTES_MIN = 16 * 1024
/** Maximum number of bytes that the process keeps for reuse. */
const UNUSED_BYTES_MAX = 16 * 1024 * 1024

const tooLarge: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: `a message must have at most ${MESSAGE_BYTES_MAX} bytes`,
}
const overBudget: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many incomplete messages are in flight',
}

/** The message, if these bytes are exactly one uncompressed message. */
export function wholeMessage(bytes: Buffer): Buffer | undefined {
  if (bytes.length < PREFIX_BYTES || bytes[0] !== 0) return undefined
  return bytes.readUInt32BE(1) === bytes.length - PREFIX_BYTES
    ? bytes.subarray(PREFIX_BYTES)
    : undefined
}

/** Unused buffers by size, which is a power of two. */
const unused = new Map<number, Buffer[]>()
let unusedBytes = 0

/** A buffer of this size, a power of two, with arbitrary content. */
function allocate(size: number): Buffer {
  const buffer = unused.get(size)?.pop()
  if (buffer === undefined) return Buffer.allocUnsafeSlow(size)
  unusedBytes -= size
  return buffer
}

/** Keeps a buffer for reuse if it is large; the caller must keep no reference to the buffer. */
function release(buffer: Buffer): void {
  const { length } = buffer
  if (length < REUSED_BYTES_MIN || unusedBytes + length > UNUSED_BYTES_MAX) return
  unusedBytes += length
  const others = unused.get(length)
  if (others === undefined) unused.set(length, [buffer])
  else others.push(buffer)
}

/** Reads the messages of one call. */
export class MessageReader {
  private readonly budget: Budget
  private readonly encoding: Encoding
  private bytes: Buffer = EMPTY
  private length = 0

  constructor(budget: Budget, encoding: Encoding) {
    this.budget = budget
    this.encoding = encoding
  }

  /** Received bytes that have not yet been returned in a message. */
  get bufferedBytes(): number {
    return this.length
  }

  /** Bytes of the next message with its prefix; `undefined` until the prefix is complete. */
  get nextBytes(): number | undefined {
    return this.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + this.bytes.readUInt32BE(1)
  }

  /** Adds a chunk; returns a fault if a limit is exceeded. */
  add(chunk: Buffer): CallFault | undefined {
    const length = this.length + chunk.length
    if (length > this.bytes.length) {
      const size = Math.max(2 ** Math.ceil(Math.log2(length)), INITIAL_BYTES)
      if (!this.budget.acquire(size - this.bytes.length)) return overBudget
      const larger = allocate(size)
      this.bytes.copy(larger, 0, 0, this.length)
      release(this.bytes)
      this.bytes = larger
    }
    chunk.copy(this.bytes, this.length)
    this.length = length
    return (this.nextBytes ?? 0) > MESSAGE_BYTES_MAX + PREFIX_BYTES ? tooLarge : undefined
  }

  /**
   * The next message, decompressed, or a fault if it is invalid; `undefined` while incomplete.
   * Decompression may wait for a thread, and is skipped if `isWanted` then returns false.
   */
  next(isWanted = () => true): Buffer | CallFault | Promise<Buffer | CallFault> | undefined {
    const { nextBytes } = this
    if (nextBytes === undefined || nextBytes > this.length) return undefined
    const flag = this.bytes[0] ?? 0
    const message = Buffer.from(this.bytes.subarray(PREFIX_BYTES, nextBytes))
    this.bytes.copyWithin(0, nextBytes, this.length)
    this.length -= nextBytes
    return flag === 0 ? message : decompress({ message, flag, encoding: this.encoding, isWanted })
  }

  /** Drops all buffered bytes. */
  clear(): void {
    this.budget.release(this.bytes.length)
    release(this.bytes)
    this.bytes = EMPTY
    this.length = 0
  }
}
