// Queues the input of one connection: received frames and deferred work of streams. Processes it in
// the time slices that the scheduler assigns; the socket is paused while input is queued.
import type { Frame, FrameReader } from './frame-reader.ts'
import { errorCodes } from './frames.ts'
import type { Lifetime } from './lifetime.ts'
import type { Budget } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'
import type { RoundRobinScheduler, ScheduledConnection } from './round-robin-scheduler.ts'

/** Maximum time until a frame is complete. */
const FRAME_MS_MAX = 10_000
/**
 * Reserved for the bytes that a paused socket has read ahead; small enough that all connections of
 * an address can wait concurrently. A socket may read ahead up to 64 KiB: `checkDeadlines` counts
 * the actual bytes several times a second.
 */
const READ_AHEAD_BYTES = 7 * 1024
/** The clock is checked after this many frames, and after each long one. */
const FRAMES_PER_CHECK = 4
const LONG_FRAME_BYTES = 1024

/** The dependencies of an input queue. */
interface InputQueueDeps {
  readonly address: string
  readonly scheduler: RoundRobinScheduler
  readonly lifetime: Lifetime
  readonly reader: FrameReader
  readonly budget: Budget
  readonly nowMs: () => number
  readonly socket: { readonly readableLength: number }
  readonly connection: {
    handleFrame(frame: Frame): void
    /** Closes the connection. */
    fail(error: unknown): void
  }
}

/** The input queue of one connection. */
export class InputQueue implements ScheduledConnection {
  readonly address: string
  private readonly deps: InputQueueDeps
  private readonly jobs: (() => void)[] = []
  /** Whether the queue waits for a slice, or works in one. */
  private isWaiting = false
  /** Bytes acquired from the budget. */
  private heldBytes = 0
  private incompleteSinceMs: number | undefined
  private untilMs = 0
  private framesHandled = 0
  private readonly handleOne = (frame: Frame): boolean => {
    this.incompleteSinceMs = undefined
    this.deps.connection.handleFrame(frame)
    this.framesHandled += 1
    const { length } = frame.payload
    if (length < LONG_FRAME_BYTES && this.framesHandled % FRAMES_PER_CHECK !== 0) return true
    return !this.isClosed() && this.deps.nowMs() < this.untilMs
  }

  constructor(deps: InputQueueDeps) {
    this.deps = deps
    this.address = deps.address
  }

  /** Adds received bytes. */
  add(chunk: Buffer): void {
    this.deps.reader.add(chunk)
    if (this.isWaiting) this.updateBudget(true)
    else if (!this.deps.scheduler.tryRun(this)) this.defer()
  }

  /** Defers work of a stream. */
  runLater(job: () => void): void {
    if (this.isClosed()) return
    this.jobs.push(job)
    if (!this.isWaiting) this.defer()
  }

  /**
   * Counts the read-ahead of a paused socket; returns whether a frame exceeds its deadline. Must be
   * called several times a second.
   */
  checkDeadlines(nowMs: number): boolean {
    if (this.isWaiting && !this.isClosed()) this.updateBudget(true)
    return nowMs - (this.incompleteSinceMs ?? nowMs) > FRAME_MS_MAX
  }

  /** Drops all queued input. */
  clear(): void {
    this.jobs.length = 0
    this.deps.reader.clear()
    this.deps.budget.release(this.heldBytes)
    this.heldBytes = 0
    this.incompleteSinceMs = undefined
  }

  runSlice(untilMs: number): boolean {
    const { lifetime } = this.deps
    if (this.isClosed()) return false
    this.untilMs = untilMs
    this.isWaiting = true // so that jobs deferred in this slice do not queue it twice
    let hasMore = false
    try {
      hasMore = this.processInput()
    } catch (error) {
      this.deps.connection.fail(error)
    }
    if (!this.isClosed()) this.updateBudget(hasMore)
    this.isWaiting = hasMore && !this.isClosed()
    if (this.isClosed()) this.deps.reader.clear()
    else lifetime.setBacklogged(hasMore)
    return this.isWaiting
  }

  private isClosed(): boolean {
    return this.deps.lifetime.isClosed
  }

  private defer(): void {
    this.isWaiting = true
    this.updateBudget(true)
    if (this.isClosed()) return
    this.deps.lifetime.setBacklogged(true)
    this.deps.scheduler.defer(this)
  }

  private processInput(): boolean {
    // Jobs that are deferred during this loop run in a later slice.
    for (let left = this.jobs.length; left > 0; left -= 1) {
      this.jobs.shift()?.()
      if (this.deps.nowMs() >= this.untilMs) return true
    }
    return this.deps.reader.read(this.handleOne) || this.jobs.length > 0
  }

  private updateBudget(hasMore: boolean): void {
    const { length } = this.deps.reader
    const ahead = Math.max(READ_AHEAD_BYTES, this.deps.socket.readableLength)
    const held = hasMore ? length + ahead : length
    if (!hasMore && length > 0) this.incompleteSinceMs ??= this.deps.nowMs()
    if (held < this.heldBytes) this.deps.budget.release(this.heldBytes - held)
    else if (held > this.heldBytes && !this.deps.budget.acquire(held - this.heldBytes)) {
      const reason = 'too much input is queued'
      this.deps.connection.fail(new ProtocolError(errorCodes.enhanceYourCalm, reason))
      return
    }
    this.heldBytes = held
  }
}
