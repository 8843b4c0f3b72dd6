// Limits work without a result: resets, pings, settings, window updates, fields, large messages and
// errors spend a client's budget, in the way of a token bucket. A successful call refunds some of
// it, an error nothing. Pure.

/** Size of the bucket, and its refill per second. */
const BURST = 10_000
const PER_SECOND = 1000
/** What a successful call refunds. */
const REFUND_PER_CALL = 3

/** The budget of one client. */
export class AbuseBudget {
  private remaining = BURST
  private refilledMs: number

  constructor(nowMs: number) {
    this.refilledMs = nowMs
  }

  /** Spends from the budget; false if it is exhausted. */
  spend(nowMs: number, amount = 1): boolean {
    this.remaining -= amount
    if (this.remaining >= 0) return true
    const seconds = (nowMs - this.refilledMs) / 1000
    this.refilledMs = nowMs
    this.remaining = Math.min(BURST, this.remaining + seconds * PER_SECOND)
    return this.remaining >= 0
  }

  /** Refunds for a successful call. */
  refund(): void {
    if (this.remaining < BURST) this.remaining += REFUND_PER_CALL
  }
}
