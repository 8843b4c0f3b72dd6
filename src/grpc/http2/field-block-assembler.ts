// Assembles field blocks from the fragments in HEADERS and CONTINUATION frames (RFC 9113 §4.3,
// §6.2). Bounds their size and number of frames; does not decode fields.
import { copyOf } from './copy-of.ts'
import { errorCodes, frameFlags, frameTypes } from './frames.ts'
import type { Frame } from './frame-reader.ts'
import type { Budget } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'

/** A complete field block (RFC 9113 §4.3): the encoded header or trailer fields of a message. */
export interface FieldBlock {
  readonly streamId: number
  /** Whether its HEADERS frame has the flag END_STREAM. */
  readonly endStream: boolean
  readonly bytes: Buffer
}

const BLOCK_BYTES_MAX = 32 * 1024
const FRAMES_MAX = 16
const PRIORITY_BYTES = 5
/** Maximum time until a block is complete. */
const BLOCK_MS_MAX = 5000

/** Assembles the field blocks of one connection. */
export class FieldBlockAssembler {
  private current:
    { streamId: number; endStream: boolean; fragments: Buffer[]; bytes: number } | undefined
  private startedMs = 0
  private readonly budget: Budget

  constructor(budget: Budget) {
    this.budget = budget
  }

  /** Throws ProtocolError for any frame but CONTINUATION while a block is incomplete. */
  checkOrder(type: number): void {
    if (this.current === undefined || type === frameTypes.continuation) return
    const reason = 'expected CONTINUATION: a field block is incomplete'
    throw new ProtocolError(errorCodes.protocol, reason)
  }

  /** Handles HEADERS; returns the block if it is complete. Throws ProtocolError. */
  start(frame: Frame, nowMs: number): FieldBlock | undefined {
    const { streamId, flags } = frame
    const endStream = (flags & frameFlags.endStream) !== 0
    const bytes = unpadded(frame, (flags & frameFlags.priority) === 0 ? 0 : PRIORITY_BYTES)
    if ((flags & frameFlags.endHeaders) !== 0) return { streamId, endStream, bytes }
    this.acquire(bytes.length)
    this.current = { streamId, endStream, fragments: [copyOf(bytes)], bytes: bytes.length }
    this.startedMs = nowMs
    return undefined
  }

  /** Whether the incomplete block exceeds its deadline. */
  isTimedOut(nowMs: number): boolean {
    return this.current !== undefined && nowMs - this.startedMs > BLOCK_MS_MAX
  }

  /** Drops the incomplete block. */
  clear(): void {
    this.budget.release(this.current?.bytes ?? 0)
    this.current = undefined
  }

  private acquire(bytes: number): void {
    if (this.budget.acquire(bytes)) return
    throw new ProtocolError(
      errorCodes.enhanceYourCalm,
      'incomplete field blocks need too much memory',
    )
  }

  /** Handles CONTINUATION; returns the block if it is complete. Throws ProtocolError. */
  continue({ streamId, flags, payload }: Frame): FieldBlock | undefined {
    const { current } = this
    if (current?.streamId !== streamId) {
      const reason = 'CONTINUATION does not continue the field block of its stream'
      throw new ProtocolError(errorCodes.protocol, reason)
    }
    this.acquire(payload.length)
    current.fragments.push(copyOf(payload))
    current.bytes += payload.length
    if (current.bytes > BLOCK_BYTES_MAX || current.fragments.length > FRAMES_MAX) {
      throw new ProtocolError(
        errorCodes.enhanceYourCalm,
        'a field block has too many bytes or frames',
      )
    }
    if ((flags & frameFlags.endHeaders) === 0) return undefined
    this.clear()
    return { streamId, endStream: current.endStream, bytes: Buffer.concat(current.fragments) }
  }
}

/** The payload without its padding and its first `skipped` bytes. Throws ProtocolError. */
export function unpadded({ flags, payload }: Frame, skipped = 0): Buffer {
  const isPadded = (flags & frameFlags.padded) !== 0
  const start = skipped + (isPadded ? 1 : 0)
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0)
  if (start > end)
    throw new ProtocolError(errorCodes.protocol, 'a frame is too short for its padding or priority')
  return start === 0 && end === payload.length ? payload : payload.subarray(start, end)
}
