// Streams that were answered before their client had sent all: it may end them in peace a while,
// and what it sends is dropped. Some clients lose an answer that a reset follows at once.
import type { Budget } from './process-bounds.ts'
import type { FrameOutput } from './frame-output.ts'
import { type ErrorCode, errorCodes } from './frames.ts'

const PEACE_MS = 1000
/** More of them are reset at once. */
const STREAMS_MAX = 1000

/** Those of one connection. */
export class EarlyAnswers {
  private readonly output: FrameOutput
  /** Until when, by stream, the oldest first. */
  private readonly untilMs = new Map<number, number>()
  private readonly wereReset = new Set<number>()
  private readonly budget: Budget

  constructor(output: FrameOutput, budget: Budget) {
    this.output = output
    this.budget = budget
  }

  /** Keeps nothing. */
  clear(): void {
    this.budget.give(this.untilMs.size)
    this.untilMs.clear()
    this.wereReset.clear()
  }

  /** A stream was answered early. */
  add(stream: number, nowMs: number): void {
    if (this.untilMs.size < STREAMS_MAX && this.budget.take(1)) {
      this.untilMs.set(stream, nowMs + PEACE_MS)
    } else this.reset(stream, errorCodes.none)
  }

  /** Whether a stream is one of them; forgotten once its client sends no more. */
  has(stream: number, isLast: boolean): boolean {
    return isLast ? this.forget(stream) : this.untilMs.has(stream)
  }

  private forget(stream: number): boolean {
    const isKnown = this.untilMs.delete(stream)
    if (isKnown) this.budget.give(1)
    return isKnown
  }

  /** Resets a stream; its client may have sent more before it reads that (RFC 9113 §5.1). */
  reset(stream: number, code: ErrorCode): void {
    this.forget(stream)
    this.output.reset(stream, code)
    this.wereReset.add(stream)
    if (this.wereReset.size <= STREAMS_MAX) return
    for (const oldest of this.wereReset) {
      this.wereReset.delete(oldest)
      return
    }
  }

  /** Whether a stream is one of the last that we reset. */
  wasReset(stream: number): boolean {
    return this.wereReset.has(stream)
  }

  /** Resets those whose time is over. */
  look(nowMs: number): void {
    for (const [stream, untilMs] of this.untilMs) {
      if (untilMs > nowMs) return
      this.reset(stream, errorCodes.none)
    }
  }
}
