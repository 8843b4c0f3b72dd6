// Puts blocks of header fields together from the frames that they are spread over (RFC 9113 §4.3,
// §6.2). Their size and the number of their frames are bounded; reads no field.
import { errorCodes, frameFlags } from './frames.ts'
import type { Frame } from './frame-reader.ts'
import type { Budget } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'

/** A block that is whole. */
export interface HeaderBlock {
  readonly stream: number
  readonly isLast: boolean
  readonly bytes: Buffer
}

const BLOCK_BYTES_MAX = 32 * 1024
const FRAMES_MAX = 16
const PRIORITY_BYTES = 5
/** A block has so long to become whole, whatever else comes. */
const BLOCK_MS_MAX = 5000

/** The blocks of one connection. */
export class HeaderBlocks {
  private begun: { stream: number; isLast: boolean; parts: Buffer[]; bytes: number } | undefined
  private begunMs = 0
  private readonly budget: Budget

  constructor(budget: Budget) {
    this.budget = budget
  }

  /** Whether nothing but the rest of a block may come now. */
  get isBegun(): boolean {
    return this.begun !== undefined
  }

  /** Takes a frame of headers; the block, if that is all of it. Throws ProtocolError. */
  begin(frame: Frame, nowMs: number): HeaderBlock | undefined {
    const { stream, flags } = frame
    const isLast = (flags & frameFlags.endStream) !== 0
    const bytes = unpadded(frame, (flags & frameFlags.priority) === 0 ? 0 : PRIORITY_BYTES)
    if ((flags & frameFlags.endHeaders) !== 0) return { stream, isLast, bytes }
    this.count(bytes.length)
    this.begun = { stream, isLast, parts: [Buffer.from(bytes)], bytes: bytes.length }
    this.begunMs = nowMs
    return undefined
  }

  /** Whether a block has not become whole in its time. */
  isLate(nowMs: number): boolean {
    return this.isBegun && nowMs - this.begunMs > BLOCK_MS_MAX
  }

  /** Keeps nothing. */
  clear(): void {
    this.budget.give(this.begun?.bytes ?? 0)
    this.begun = undefined
  }

  private count(bytes: number): void {
    if (this.budget.take(bytes)) return
    throw new ProtocolError(errorCodes.enhanceYourCalm, 'too many blocks are not whole')
  }

  /** Takes a frame that goes on with the block; the block, if it is whole. Throws ProtocolError. */
  continue({ stream, flags, payload }: Frame): HeaderBlock | undefined {
    const { begun } = this
    if (begun?.stream !== stream) {
      throw new ProtocolError(errorCodes.protocol, 'it goes on with a block that was not begun')
    }
    this.count(payload.length)
    begun.parts.push(Buffer.from(payload))
    begun.bytes += payload.length
    if (begun.bytes > BLOCK_BYTES_MAX || begun.parts.length > FRAMES_MAX) {
      throw new ProtocolError(errorCodes.enhanceYourCalm, 'a block of headers is too long')
    }
    if ((flags & frameFlags.endHeaders) === 0) return undefined
    this.clear()
    return { stream, isLast: begun.isLast, bytes: Buffer.concat(begun.parts) }
  }
}

/** A payload without its padding and the `skipped` bytes before it. Throws ProtocolError. */
export function unpadded({ flags, payload }: Frame, skipped = 0): Buffer {
  const isPadded = (flags & frameFlags.padded) !== 0
  const begin = skipped + (isPadded ? 1 : 0)
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0)
  if (begin > end)
    throw new ProtocolError(errorCodes.protocol, 'a frame is shorter than its padding')
  return begin === 0 && end === payload.length ? payload : payload.subarray(begin, end)
}
