// Limits unproductive work with a token bucket: control frames, resets, small DATA frames, header
// fields, large messages and some errors spend the budget of their connection. It refills over
// time, and each successful call refunds a few units. Does no I/O; the time is an argument.

/** Size of the bucket, and its refill per second. */
const BURST = 10_000
const PER_SECOND = 1000
/** Amount that a successful call refunds. */
const REFUND_PER_CALL = 3

/** The reason for closing a connection whose budget is exhausted. */
export const EXHAUSTED = 'the connection causes too much unproductive work'

/** The budget of one connection. */
export class AbuseBudget {
  private remaining = BURST
  private refilledMs: number

  constructor(nowMs: number) {
    this.refilledMs = nowMs
  }

  /** Spends from the budget; false if it is exhausted. */
  spend(nowMs: number, amount = 1): boolean {
    const refill = ((nowMs - this.refilledMs) / 1000) * PER_SECOND
    this.refilledMs = nowMs
    this.remaining = Math.min(BURST, this.remaining + refill) - amount
    return this.remaining >= 0
  }

  /** Refunds REFUND_PER_CALL units for a successful call. */
  refund(): void {
    if (this.remaining < BURST) this.remaining += REFUND_PER_CALL
  }
}
