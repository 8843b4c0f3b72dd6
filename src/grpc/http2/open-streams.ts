// The streams of one connection that are open, which of them wait for the client, and how many
// places are taken. Reads and writes no frame.
import type { CallStream } from './call-stream.ts'
import type { Budget } from './process-bounds.ts'
import { WINDOW_BYTES } from './frames.ts'
import { widen } from './windows.ts'

/** Calls at once on one connection, those counted that the client has given up. */
export const STREAMS_MAX = 1000
/** So many that are late are ended at once. */
const LATE_AT_ONCE = 100

/** Those of one connection. */
export class OpenStreams {
  /** Bytes that the client takes at first on each. */
  windowBytes = WINDOW_BYTES
  /** The highest that was begun. */
  last = 0
  private used = 0
  private readonly budget: Budget
  private readonly streams = new Map<number, CallStream>()
  private readonly blocked = new Set<CallStream>()

  constructor(budget: Budget) {
    this.budget = budget
  }

  /** How many are open. */
  get count(): number {
    return this.streams.size
  }

  /** Takes a place for one more, if there is one. */
  takePlace(): boolean {
    if (this.used >= STREAMS_MAX || !this.budget.take(1)) return false
    this.used += 1
    return true
  }

  /** Whether a stream of this number was never begun. */
  isIdle(id: number): boolean {
    return id > this.last || id % 2 === 0
  }

  /** Undefined once it is over. */
  get(id: number): CallStream | undefined {
    return this.streams.get(id)
  }

  /** A stream that has its place. */
  add(stream: CallStream): void {
    this.streams.set(stream.id, stream)
  }

  /** The stream is over; its place is not free yet. */
  forget(stream: CallStream): void {
    this.streams.delete(stream.id)
    this.blocked.delete(stream)
  }

  /** A place is free again. */
  free(): void {
    this.used -= 1
    this.budget.give(1)
  }

  /** The stream waits for what all wait for. */
  block(stream: CallStream): void {
    this.blocked.add(stream)
  }

  /** Lets those that wait go on while `mayGo`: who waited longest first, who waits on last. */
  pump(mayGo: () => boolean): void {
    for (const stream of this.blocked) {
      if (!mayGo()) return
      this.blocked.delete(stream)
      stream.pump()
    }
  }

  /** What the client takes of each at first, of those open too. Throws ProtocolError. */
  setWindow(bytes: number): void {
    const more = bytes - this.windowBytes
    if (more === 0) return
    this.windowBytes = bytes
    for (const stream of this.streams.values()) widen(stream, more)
    for (const stream of this.streams.values()) stream.pump()
  }

  /** Cuts those whose client is gone. */
  cut(): void {
    for (const stream of this.streams.values()) stream.cut()
  }

  /** Gives those whose time is over to `end`. */
  endLate(nowMs: number, end: (stream: CallStream) => void): void {
    let ended = 0
    for (const stream of this.streams.values()) {
      if (stream.untilMs > nowMs) continue
      end(stream)
      ended += 1
      if (ended === LATE_AT_ONCE) return
    }
  }
}
