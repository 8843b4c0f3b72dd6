// Finds the frames in what a client of HTTP/2 sends, after its preface. Keeps one frame at most
// that is not there whole; knows nothing of what the frames mean.
import { errorCodes, FRAME_BYTES_MAX, FRAME_HEAD_BYTES } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'

/** A frame; to be used before the next one is read. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Reads what comes on one connection. */
export class FrameReader {
  /** Whether the client has said that it speaks HTTP/2. */
  hasPreface = false
  private rest: Buffer | undefined
  private isCopied = true
  private readonly frame = { type: 0, flags: 0, stream: 0, payload: PREFACE as Buffer }

  /** Bytes that were not read yet. */
  get length(): number {
    return this.rest?.length ?? 0
  }

  /** Takes what came. */
  add(chunk: Buffer): void {
    this.isCopied = this.rest !== undefined
    this.rest = this.rest === undefined ? chunk : Buffer.concat([this.rest, chunk])
  }

  /** Keeps nothing. */
  clear(): void {
    this.rest = undefined
  }

  /**
   * Gives each frame that is whole to `take` until that says no; whether it did, so that more may
   * be there. Throws ProtocolError.
   */
  read(take: (frame: Frame) => boolean): boolean {
    const bytes = this.rest
    if (bytes === undefined) return false
    let at = this.hasPreface ? 0 : this.readPreface(bytes)
    if (!this.hasPreface) return false
    while (at + FRAME_HEAD_BYTES <= bytes.length) {
      const length =
        (byteAt(bytes, at) << 16) | (byteAt(bytes, at + 1) << 8) | byteAt(bytes, at + 2)
      if (length > FRAME_BYTES_MAX) {
        throw new ProtocolError(errorCodes.frameSize, 'a frame is longer than was agreed')
      }
      const begin = at + FRAME_HEAD_BYTES
      if (begin + length > bytes.length) break
      const { frame } = this
      frame.type = byteAt(bytes, at + 3)
      frame.flags = byteAt(bytes, at + 4)
      frame.stream = numberAt(bytes, at + 5) & 0x7fffffff
      frame.payload = bytes.subarray(begin, begin + length)
      at = begin + length
      if (take(frame)) continue
      this.rest = at < bytes.length ? bytes.subarray(at) : undefined
      this.isCopied = false // a part of more
      return this.rest !== undefined
    }
    // A copy, lest a few bytes keep what they came with.
    const isKept = at < bytes.length
    if (!isKept || at > 0 || !this.isCopied) {
      this.rest = isKept ? Buffer.from(bytes.subarray(at)) : undefined
    }
    return false
  }

  private readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, PREFACE.length)
    if (!bytes.subarray(0, length).equals(PREFACE.subarray(0, length))) {
      throw new ProtocolError(errorCodes.protocol, 'this is not HTTP/2')
    }
    if (length < PREFACE.length) return 0
    this.hasPreface = true
    return length
  }
}

function byteAt(bytes: Buffer, at: number): number {
  return bytes[at] ?? 0
}

/** Four bytes as they stand in frames. */
export function numberAt(bytes: Buffer, at: number): number {
  return (
    ((byteAt(bytes, at) << 24) |
      (byteAt(bytes, at + 1) << 16) |
      (byteAt(bytes, at + 2) << 8) |
      byteAt(bytes, at + 3)) >>>
    0
  )
}
