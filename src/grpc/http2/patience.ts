// How much a client may ask for nothing: resets, pings, settings and the like cost work and bring
// nobody an answer, and so do windows, fields, large messages and errors. A call that is answered
// well makes up for some, and an error for none. Pure.

/** At once, and each second from then on. */
const BURST = 10_000
const EACH_SECOND = 1000
/** What an answered call makes up for. */
const EACH_CALL = 3

/** The patience with one client. */
export class Patience {
  private left = BURST
  private atMs: number

  constructor(nowMs: number) {
    this.atMs = nowMs
  }

  /** Whether one frame more is borne. */
  bear(nowMs: number, amount = 1): boolean {
    this.left -= amount
    if (this.left >= 0) return true
    const seconds = (nowMs - this.atMs) / 1000
    this.atMs = nowMs
    this.left = Math.min(BURST, this.left + seconds * EACH_SECOND)
    return this.left >= 0
  }

  /** A call was answered. */
  makeUp(): void {
    if (this.left < BURST) this.left += EACH_CALL
  }
}
