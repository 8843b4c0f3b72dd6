// Streams whose response was sent before the request was complete. The client has a grace period to
// send END_STREAM, and its data is dropped. The stream is not reset immediately, because some
// clients would then lose the response.
import type { Budget } from './process-bounds.ts'
import type { FrameOutput } from './frame-output.ts'
import { type ErrorCode, errorCodes } from './frames.ts'

const GRACE_MS = 1000
/** Beyond this number, streams are reset immediately. */
const CLOSING_MAX = 1000
/** Maximum number of reset streams whose ids are kept; no budget counts these ids. */
const RESET_MAX = 128

/** The closing streams of one connection. */
export class ClosingStreams {
  private readonly output: FrameOutput
  /** End of the grace period by stream id, oldest first. */
  private readonly expiresMs = new Map<number, number>()
  private readonly recentlyReset = new Set<number>()
  private readonly budget: Budget

  constructor(output: FrameOutput, budget: Budget) {
    this.output = output
    this.budget = budget
  }

  /** Removes all streams. */
  clear(): void {
    this.budget.release(this.expiresMs.size)
    this.expiresMs.clear()
    this.recentlyReset.clear()
  }

  /** Starts the grace period of a stream; resets it if too many are closing. */
  add(streamId: number, nowMs: number): void {
    if (this.expiresMs.size < CLOSING_MAX && this.budget.acquire(1)) {
      this.expiresMs.set(streamId, nowMs + GRACE_MS)
    } else this.reset(streamId, errorCodes.noError)
  }

  /** Whether a stream may still send a frame, which is dropped; END_STREAM removes the stream. */
  acceptFrame(streamId: number, endStream: boolean): boolean {
    return endStream ? this.remove(streamId) : this.expiresMs.has(streamId)
  }

  /** Removes a stream; returns whether it was in its grace period. */
  remove(streamId: number): boolean {
    const wasPresent = this.expiresMs.delete(streamId)
    if (wasPresent) this.budget.release(1)
    return wasPresent
  }

  /** Resets a stream; further frames of it may be in flight (RFC 9113 §5.1). */
  reset(streamId: number, code: ErrorCode): void {
    this.remove(streamId)
    this.output.reset(streamId, code)
    this.recentlyReset.add(streamId)
    if (this.recentlyReset.size <= RESET_MAX) return
    for (const oldest of this.recentlyReset) {
      this.recentlyReset.delete(oldest)
      return
    }
  }

  /** Whether a stream was reset recently. */
  wasReset(streamId: number): boolean {
    return this.recentlyReset.has(streamId)
  }

  /** Resets streams after their grace period. */
  resetExpired(nowMs: number): void {
    for (const [streamId, expiresMs] of this.expiresMs) {
      if (expiresMs > nowMs) return
      this.reset(streamId, errorCodes.noError)
    }
  }
}
