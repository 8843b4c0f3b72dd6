// Schedules busy connections in each turn of the event loop by round robin: first over the client
// addresses, then over the connections of each address. Independent of the work.

/** Time for connections in each of two phases of a turn: `run` during the poll, and `runTurn`. */
const TURN_MS_MAX = 2
/** Time slice of one connection. */
const SLICE_MS_MAX = 1

/** A connection with work to do. */
export interface Worker {
  readonly address: string
  /** Works until `untilMs`; returns whether work remains for another slice. */
  work(untilMs: number): boolean
}

/** The scheduler of one process. */
export class Turns {
  private readonly nowMs: () => number
  private spentMs = 0
  private isScheduled = false
  /** Waiting workers by address, in order. */
  private readonly waiting = new Map<string, Worker[]>()

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /**
   * Runs a worker now, and its remaining work in later slices. Returns false if this turn has no
   * time left or other workers of its address wait: the caller must then defer the worker.
   */
  run(worker: Worker): boolean {
    this.schedule()
    const hasTime = this.spentMs < TURN_MS_MAX && !this.waiting.has(worker.address)
    if (hasTime) this.serve(worker)
    return hasTime
  }

  /** Runs a worker in a later slice. Must not be called while it waits or works. */
  defer(worker: Worker): void {
    this.schedule()
    this.add(worker)
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(this.runTurn)
  }

  private readonly runTurn = () => {
    this.isScheduled = false
    this.spentMs = 0
    while (this.spentMs < TURN_MS_MAX) {
      const entry = this.waiting.entries().next().value
      if (entry === undefined) break
      const [address, workers] = entry
      const worker = workers.shift()
      this.waiting.delete(address)
      if (workers.length > 0) this.waiting.set(address, workers)
      if (worker !== undefined) this.serve(worker)
    }
    this.spentMs = 0
    if (this.waiting.size > 0) this.schedule()
  }

  private serve(worker: Worker): void {
    const startedMs = this.nowMs()
    const hasMore = worker.work(startedMs + SLICE_MS_MAX)
    this.spentMs += this.nowMs() - startedMs
    if (hasMore) this.add(worker)
  }

  private add(worker: Worker): void {
    const workers = this.waiting.get(worker.address)
    if (workers === undefined) this.waiting.set(worker.address, [worker])
    else workers.push(worker)
  }
}
