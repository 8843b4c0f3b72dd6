// What came on one connection and was not worked on yet: frames, and work that streams have put
// off. It is worked on by slices of the event loop's turns; meanwhile the socket is not read.
import type { Frame, FrameReader } from './frame-reader.ts'
import { errorCodes } from './frames.ts'
import type { Lifetime } from './lifetime.ts'
import type { Budget } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'
import type { Turns, Worker } from './turns.ts'

/** A frame that is not whole has so long to become so. */
const FRAME_MS_MAX = 10_000
/**
 * Reserved for what a paused socket may still read, so that all connections of an address may wait
 * at once. It may read more, up to 64 KiB: `look` counts that, several times a second.
 */
const READ_AHEAD_BYTES = 7 * 1024
/** So many frames, or one that is long, are taken between looks at the clock. */
const FRAMES_A_LOOK = 4
const LONG_FRAME_BYTES = 1024

/** What it needs. */
interface IntakeDeps {
  readonly address: string
  readonly turns: Turns
  readonly lifetime: Lifetime
  readonly reader: FrameReader
  readonly budget: Budget
  readonly nowMs: () => number
  readonly socket: { readonly readableLength: number }
  readonly connection: {
    takeFrame(frame: Frame): void
    /** Ends the connection. */
    fail(error: unknown): void
  }
}

/** The intake of one connection. */
export class Intake implements Worker {
  readonly address: string
  private readonly deps: IntakeDeps
  private readonly jobs: (() => void)[] = []
  private isWaiting = false
  private held = 0
  private unfinishedMs: number | undefined
  private untilMs = 0
  private framesTaken = 0
  private readonly takeOne = (frame: Frame): boolean => {
    this.unfinishedMs = undefined
    this.deps.connection.takeFrame(frame)
    this.framesTaken += 1
    const { length } = frame.payload
    if (length < LONG_FRAME_BYTES && this.framesTaken % FRAMES_A_LOOK !== 0) return true
    return !this.isOver() && this.deps.nowMs() < this.untilMs
  }

  constructor(deps: IntakeDeps) {
    this.deps = deps
    this.address = deps.address
  }

  /** Takes what came. */
  add(chunk: Buffer): void {
    this.deps.reader.add(chunk)
    if (this.isWaiting) this.count(true)
    else if (!this.deps.turns.run(this)) this.defer()
  }

  /** Puts off work of a stream. */
  later(job: () => void): void {
    if (this.isOver()) return
    this.jobs.push(job)
    if (!this.isWaiting) this.defer()
  }

  /**
   * Counts what a paused socket has read; whether a frame has exceeded its time. To be called
   * several times a second.
   */
  look(nowMs: number): boolean {
    if (this.isWaiting && !this.isOver()) this.count(true)
    return nowMs - (this.unfinishedMs ?? nowMs) > FRAME_MS_MAX
  }

  /** Keeps nothing. */
  clear(): void {
    this.jobs.length = 0
    this.deps.reader.clear()
    this.deps.budget.give(this.held)
    this.held = 0
    this.unfinishedMs = undefined
  }

  work(untilMs: number): boolean {
    const { lifetime } = this.deps
    if (this.isOver()) return false
    this.untilMs = untilMs
    let hasMore = false
    try {
      hasMore = this.workOn()
    } catch (error) {
      this.deps.connection.fail(error)
    }
    if (!this.isOver()) this.count(hasMore)
    this.isWaiting = hasMore && !this.isOver()
    if (this.isOver()) this.deps.reader.clear()
    else lifetime.hold(hasMore)
    return this.isWaiting
  }

  private isOver(): boolean {
    return this.deps.lifetime.isOver
  }

  private defer(): void {
    this.isWaiting = true
    this.count(true)
    if (this.isOver()) return
    this.deps.lifetime.hold(true)
    this.deps.turns.defer(this)
  }

  private workOn(): boolean {
    // Those that are put off meanwhile have their turn later.
    for (let left = this.jobs.length; left > 0; left -= 1) {
      this.jobs.shift()?.()
      if (this.deps.nowMs() >= this.untilMs) return true
    }
    return this.deps.reader.read(this.takeOne) || this.jobs.length > 0
  }

  private count(hasMore: boolean): void {
    const { length } = this.deps.reader
    const ahead = Math.max(READ_AHEAD_BYTES, this.deps.socket.readableLength)
    const held = hasMore ? length + ahead : length
    if (!hasMore && length > 0) this.unfinishedMs ??= this.deps.nowMs()
    if (held < this.held) this.deps.budget.give(this.held - held)
    else if (held > this.held && !this.deps.budget.take(held - this.held)) {
      const why = 'too much of what came is not worked on'
      this.deps.connection.fail(new ProtocolError(errorCodes.enhanceYourCalm, why))
      return
    }
    this.held = held
  }
}
