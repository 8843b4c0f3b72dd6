// Schedules busy connections in each turn of the event loop by round robin: first over the client
// addresses, then over the connections of each address. Independent of what a connection does.

/** Time for connections in each phase of a turn: in `tryRun` during the poll, and in `runTurn`. */
const TURN_MS_MAX = 2
/** Time slice of one connection. */
const SLICE_MS_MAX = 1

/** A connection with input to process. */
export interface ScheduledConnection {
  readonly address: string
  /** Processes input until `untilMs`; returns whether some input remains. */
  runSlice(untilMs: number): boolean
}

/** The scheduler of one process. */
export class RoundRobinScheduler {
  private readonly nowMs: () => number
  private spentMs = 0
  private isScheduled = false
  /** Waiting connections by address, in order. */
  private readonly waiting = new Map<string, ScheduledConnection[]>()

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /**
   * Runs a connection now, and the rest of its input in later slices. Returns false if this turn
   * has no time left or other connections of its address wait: the caller must then defer it.
   */
  tryRun(connection: ScheduledConnection): boolean {
    this.schedule()
    const hasTime = this.spentMs < TURN_MS_MAX && !this.waiting.has(connection.address)
    if (hasTime) this.runNow(connection)
    return hasTime
  }

  /** Runs a connection in a later slice. Must not be called while it waits or runs. */
  defer(connection: ScheduledConnection): void {
    this.schedule()
    this.add(connection)
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
      const [address, connections] = entry
      const connection = connections.shift()
      this.waiting.delete(address)
      if (connections.length > 0) this.waiting.set(address, connections)
      if (connection !== undefined) this.runNow(connection)
    }
    this.spentMs = 0
    if (this.waiting.size > 0) this.schedule()
  }

  private runNow(connection: ScheduledConnection): void {
    const startedMs = this.nowMs()
    const hasMore = connection.runSlice(startedMs + SLICE_MS_MAX)
    this.spentMs += this.nowMs() - startedMs
    if (hasMore) this.add(connection)
  }

  private add(connection: ScheduledConnection): void {
    const connections = this.waiting.get(connection.address)
    if (connections === undefined) this.waiting.set(connection.address, [connection])
    else connections.push(connection)
  }
}
