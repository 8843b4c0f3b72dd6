// The open streams of one connection: which of them are blocked, and how many slots are in use. A
// call has a slot until its stream is closed and its handler is done. Reads and writes no frames.
import type { CallStream } from './call-stream.ts'
import type { Budget } from './process-bounds.ts'
import { INITIAL_WINDOW_SIZE } from './frames.ts'
import { increaseWindow } from './windows.ts'

/** SETTINGS_MAX_CONCURRENT_STREAMS; also counts cancelled calls that are still in progress. */
export const MAX_CONCURRENT_STREAMS = 1000
/** Maximum number of streams that one check closes. */
const TIMED_OUT_PER_CHECK = 100

/** The open streams of one connection. */
export class OpenStreams {
  /** The client's SETTINGS_INITIAL_WINDOW_SIZE. */
  initialWindowSize = INITIAL_WINDOW_SIZE
  /** The highest stream identifier that the client has used. */
  lastStreamId = 0
  private slotsUsed = 0
  private readonly budget: Budget
  private readonly streams = new Map<number, CallStream>()
  private readonly blocked = new Set<CallStream>()

  constructor(budget: Budget) {
    this.budget = budget
  }

  /** The number of open streams. */
  get count(): number {
    return this.streams.size
  }

  /** Takes a slot; false if the connection or the process has none free. */
  takeSlot(): boolean {
    if (this.slotsUsed >= MAX_CONCURRENT_STREAMS || !this.budget.acquire(1)) return false
    this.slotsUsed += 1
    return true
  }

  /** Whether the stream was never opened. */
  isIdle(id: number): boolean {
    return id > this.lastStreamId || id % 2 === 0
  }

  /** The open stream of an id; `undefined` once it is closed. */
  get(id: number): CallStream | undefined {
    return this.streams.get(id)
  }

  /** Adds a stream that has a slot. */
  add(stream: CallStream): void {
    this.streams.set(stream.id, stream)
  }

  /** Removes a closed stream; its slot may still be in use. */
  remove(stream: CallStream): void {
    this.streams.delete(stream.id)
    this.blocked.delete(stream)
  }

  /** Frees a slot. */
  freeSlot(): void {
    this.slotsUsed -= 1
    this.budget.release(1)
  }

  /** Queues a stream that waits for the connection's window or for the socket to drain. */
  block(stream: CallStream): void {
    this.blocked.add(stream)
  }

  /** Resumes blocked streams in order while `canContinue`; those still blocked go to the end. */
  pump(canContinue: () => boolean): void {
    for (const stream of this.blocked) {
      if (!canContinue()) return
      this.blocked.delete(stream)
      stream.pump()
    }
  }

  /** Sets the initial window size and adjusts the windows of open streams. Throws ProtocolError. */
  setInitialWindowSize(bytes: number): void {
    const increment = bytes - this.initialWindowSize
    if (increment === 0) return
    this.initialWindowSize = bytes
    for (const stream of this.streams.values()) increaseWindow(stream, increment)
    for (const stream of this.streams.values()) stream.pump()
  }

  /** Destroys all streams when the connection closes. */
  destroyAll(): void {
    for (const stream of this.streams.values()) stream.destroy()
  }

  /** Calls `close` for streams past their deadline, at most TIMED_OUT_PER_CHECK of them. */
  closeTimedOut(nowMs: number, close: (stream: CallStream) => void): void {
    let closed = 0
    for (const stream of this.streams.values()) {
      if (stream.deadlineMs > nowMs) continue
      close(stream)
      closed += 1
      if (closed === TIMED_OUT_PER_CHECK) return
    }
  }
}
