// Streams whose response was sent before the request was complete. The client has a grace period to
// send END_STREAM, and its data is dropped. The stream is not reset immediately, because some
// clients would then lose the response.
import type { Budget } from './process-bounds.ts'
import type { FrameOutput } from './frame-output.ts'
import { type ErrorCode, errorCodes } from './frames.ts'

const GRACE_MS = 1000
/** Beyond this number, streams are reset immediately. */
const EARLY_RESPONSES_MAX = 1000

/** The early responses of one connection. */
export class EarlyResponses {
  private readonly output: FrameOutput
  /** End of the grace period by stream, oldest first. */
  private readonly expiresMs = new Map<number, number>()
  private readonly wereReset = new Set<number>()
  private readonly budget: Budget

  constructor(output: FrameOutput, budget: Budget) {
    this.output = output
    this.budget = budget
  }

  /** Removes all streams. */
  clear(): void {
    this.budget.release(this.expiresMs.size)
    this.expiresMs.clear()
    this.wereReset.clear()
  }

  /** Adds a stream. */
  add(stream: number, nowMs: number): void {
    if (this.expiresMs.size < EARLY_RESPONSES_MAX && this.budget.acquire(1)) {
      this.expiresMs.set(stream, nowMs + GRACE_MS)
    } else this.reset(stream, errorCodes.noError)
  }

  /** Whether a stream is in its grace period; removes the stream if this is its last frame. */
  has(stream: number, isLast: boolean): boolean {
    return isLast ? this.remove(stream) : this.expiresMs.has(stream)
  }

  private remove(stream: number): boolean {
    const wasPresent = this.expiresMs.delete(stream)
    if (wasPresent) this.budget.release(1)
    return wasPresent
  }

  /** Resets a stream; further frames of it may be in flight (RFC 9113 §5.1). */
  reset(stream: number, code: ErrorCode): void {
    this.remove(stream)
    this.output.reset(stream, code)
    this.wereReset.add(stream)
    if (this.wereReset.size <= EARLY_RESPONSES_MAX) return
    for (const oldest of this.wereReset) {
      this.wereReset.delete(oldest)
      return
    }
  }

  /** Whether a stream was reset recently. */
  wasReset(stream: number): boolean {
    return this.wereReset.has(stream)
  }

  /** Resets streams after their grace period. */
  resetExpired(nowMs: number): void {
    for (const [stream, expiresMs] of this.expiresMs) {
      if (expiresMs > nowMs) return
      this.reset(stream, errorCodes.noError)
    }
  }
}
