// Splits received bytes into HTTP/2 frames, after the preface. Buffers at most one incomplete
// frame. Independent of the meaning of the frames.
import { copyOf, EMPTY } from './copy-of.ts'
import { errorCodes, DEFAULT_MAX_FRAME_SIZE, FRAME_HEADER_BYTES } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'

/** A frame; valid until the next one is read. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Reads the frames of one connection. */
export class FrameReader {
  /** Whether the client's connection preface was received. */
  hasPreface = false
  private unread: Buffer | undefined
  /** Whether `unread` has its own memory, and is not a slice of a larger buffer. */
  private isCopied = true
  private readonly frame = { type: 0, flags: 0, streamId: 0, payload: EMPTY }

  /** The number of unread bytes. */
  get length(): number {
    return this.unread?.length ?? 0
  }

  /** Adds received bytes. */
  add(chunk: Buffer): void {
    this.isCopied = this.unread !== undefined
    this.unread = this.unread === undefined ? chunk : copyOf(this.unread, chunk)
  }

  /** Drops the buffered bytes. */
  clear(): void {
    this.unread = undefined
  }

  /**
   * Passes complete frames to `handle`. Returns true if `handle` returned false and unread bytes
   * remain. Throws ProtocolError.
   */
  read(handle: (frame: Frame) => boolean): boolean {
    try {
      return this.readFrames(handle)
    } finally {
      this.frame.payload = EMPTY // a slice would keep the whole received chunk in memory
    }
  }

  private readFrames(handle: (frame: Frame) => boolean): boolean {
    const bytes = this.unread
    if (bytes === undefined) return false
    let at = this.hasPreface ? 0 : this.readPreface(bytes)
    if (!this.hasPreface) return false
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const length =
        (byteAt(bytes, at) << 16) | (byteAt(bytes, at + 1) << 8) | byteAt(bytes, at + 2)
      if (length > DEFAULT_MAX_FRAME_SIZE) {
        throw new ProtocolError(errorCodes.frameSize, 'a frame exceeds SETTINGS_MAX_FRAME_SIZE')
      }
      const start = at + FRAME_HEADER_BYTES
      if (start + length > bytes.length) break
      const { frame } = this
      frame.type = byteAt(bytes, at + 3)
      frame.flags = byteAt(bytes, at + 4)
      frame.streamId = readUint32(bytes, at + 5) & 0x7fffffff
      frame.payload = bytes.subarray(start, start + length)
      at = start + length
      if (handle(frame)) continue
      this.unread = at < bytes.length ? bytes.subarray(at) : undefined
      this.isCopied = false // a slice of a larger buffer
      return this.unread !== undefined
    }
    // Copied, because a slice of a few bytes would keep its whole buffer in memory.
    const isKept = at < bytes.length
    if (!isKept || at > 0 || !this.isCopied) {
      this.unread = isKept ? copyOf(bytes.subarray(at)) : undefined
    }
    return false
  }

  private readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, PREFACE.length)
    if (!bytes.subarray(0, length).equals(PREFACE.subarray(0, length))) {
      throw new ProtocolError(errorCodes.protocol, 'the connection preface is invalid')
    }
    if (length < PREFACE.length) return 0
    this.hasPreface = true
    return length
  }
}

function byteAt(bytes: Buffer, at: number): number {
  return bytes[at] ?? 0
}

/** Reads four bytes in network order. */
export function readUint32(bytes: Buffer, at: number): number {
  return (
    ((byteAt(bytes, at) << 24) |
      (byteAt(bytes, at + 1) << 16) |
      (byteAt(bytes, at + 2) << 8) |
      byteAt(bytes, at + 3)) >>>
    0
  )
}
