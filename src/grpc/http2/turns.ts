// Shares each turn of the event loop among connections that have more to do than a slice of it:
// addresses take turns, and the connections of each. Knows nothing of what the work is.

/** Work on connections takes so long in one turn, before and after the loop looks for events. */
const TURN_MS_MAX = 2
/** One connection works for so long at a time. */
const SLICE_MS_MAX = 1

/** What has work to do. */
export interface Worker {
  readonly address: string
  /** Works until the time given; whether more is left, which then waits for its next turn. */
  work(untilMs: number): boolean
}

/** The turns of one process. */
export class Turns {
  private readonly nowMs: () => number
  private spentMs = 0
  private isScheduled = false
  /** Who waits, by address, the first first. */
  private readonly waiting = new Map<string, Worker[]>()

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /**
   * Lets it work now, and for the rest later. False if this turn has no time left, or if others of
   * its address wait: it is then to be deferred, so that the time is left to other addresses.
   */
  run(one: Worker): boolean {
    this.schedule()
    const hasTime = this.spentMs < TURN_MS_MAX && !this.waiting.has(one.address)
    if (hasTime) this.serve(one)
    return hasTime
  }

  /** Lets it work in a later turn. */
  defer(one: Worker): void {
    this.schedule()
    this.add(one)
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(this.take)
  }

  private readonly take = () => {
    this.isScheduled = false
    this.spentMs = 0
    while (this.spentMs < TURN_MS_MAX) {
      const next = this.waiting.entries().next().value
      if (next === undefined) break
      const [address, workers] = next
      const one = workers.shift()
      this.waiting.delete(address)
      if (workers.length > 0) this.waiting.set(address, workers)
      if (one !== undefined) this.serve(one)
    }
    this.spentMs = 0
    if (this.waiting.size > 0) this.schedule()
  }

  private serve(one: Worker): void {
    const begunMs = this.nowMs()
    const hasMore = one.work(begunMs + SLICE_MS_MAX)
    this.spentMs += this.nowMs() - begunMs
    if (hasMore) this.add(one)
  }

  private add(one: Worker): void {
    const workers = this.waiting.get(one.address)
    if (workers === undefined) this.waiting.set(one.address, [one])
    else workers.push(one)
  }
}
