// Collects the frames of one connection and hands all that come up in one turn of the event loop to
// the socket in one write. Knows nothing of what the frames are for.
import type { Duplex } from 'node:stream'
import type { Budget } from './process-bounds.ts'
import { type ErrorCode, FRAME_HEAD_BYTES, type FrameKind, sentFrames } from './frames.ts'

const BYTES_AT_FIRST = 1024
/** What has been collected is handed over before it grows beyond this. */
const BYTES_MAX = 64 * 1024
/** A buffer that grew beyond this goes to the socket itself, and is not kept for the next turn. */
const BYTES_KEPT_MAX = 4 * 1024

/** Writes frames. */
export class FrameOutput {
  /** The client reads too slowly: the socket holds back what it is given. */
  isFull = false
  private readonly socket: Duplex
  private bytes: Buffer = Buffer.alloc(0)
  private at = 0
  private readonly budget: Budget
  private isScheduled = false
  /** What the socket holds back. */
  private held = 0
  private readonly flushLater = () => {
    this.isScheduled = false
    this.flush()
  }

  constructor(socket: Duplex, budget: Budget) {
    this.socket = socket
    this.budget = budget
  }

  /** The client has read what the socket held back, or never will. */
  drained(): void {
    this.isFull = false
    this.budget.give(this.held)
    this.held = 0
  }

  /** A frame with this payload. */
  frame(kind: FrameKind, stream: number, payload: Buffer): void {
    const { length } = payload
    this.head(kind, stream, length)
    if (length < 32) {
      // Few bytes: quicker than a call of the engine.
      for (let i = 0; i < length; i += 1) this.bytes[this.at + i] = payload[i] ?? 0
    } else payload.copy(this.bytes, this.at)
    this.at += length
  }

  /** A frame of data that holds a whole message of gRPC, not packed. */
  message(stream: number, message: Buffer): void {
    const { length } = message
    this.head(sentFrames.data, stream, 5 + length)
    this.bytes[this.at] = 0
    this.number(this.at + 1, length)
    message.copy(this.bytes, this.at + 5)
    this.at += 5 + length
  }

  /** Ends a stream at once. */
  reset(stream: number, code: ErrorCode): void {
    this.numbers(sentFrames.reset, stream, [code])
  }

  /** Lets the client send so many bytes more. */
  windowUpdate(stream: number, bytes: number): void {
    this.numbers(sentFrames.windowUpdate, stream, [bytes])
  }

  /** Tells the client to send no streams beyond the one named. */
  goAway(lastStream: number, code: ErrorCode): void {
    this.numbers(sentFrames.goAway, 0, [lastStream, code])
  }

  /** Our settings, by name. */
  settings(settings: readonly (readonly [name: number, value: number])[]): void {
    this.head(sentFrames.settings, 0, settings.length * 6)
    for (const [name, value] of settings) {
      this.bytes[this.at] = 0
      this.bytes[this.at + 1] = name
      this.number(this.at + 2, value)
      this.at += 6
    }
  }

  /** The client's settings are kept from now on. */
  acknowledgeSettings(): void {
    this.head(sentFrames.settingsKept, 0, 0)
  }

  /** Hands what there is to the socket. */
  flush(): void {
    const { at, socket } = this
    if (at === 0) return
    this.at = 0
    if (!socket.writable) return
    const written = this.bytes.subarray(0, at)
    const isKept = this.bytes.length <= BYTES_KEPT_MAX
    if (!isKept) this.bytes = Buffer.alloc(0)
    const isTaken = socket.write(isKept ? Buffer.from(written) : written)
    if (!isTaken) this.countHeld()
  }

  private countHeld(): void {
    this.isFull = true
    const more = this.socket.writableLength - this.held
    if (more <= 0) return
    if (this.budget.take(more)) this.held += more
    else this.socket.destroy() // it does not read: there is no way to tell it why
  }

  private numbers(kind: FrameKind, stream: number, numbers: readonly number[]): void {
    this.head(kind, stream, numbers.length * 4)
    for (const number of numbers) {
      this.number(this.at, number)
      this.at += 4
    }
  }

  /** Writes a frame's head, with room for its payload after it. */
  private head(kind: FrameKind, stream: number, length: number): void {
    this.need(FRAME_HEAD_BYTES + length)
    const { bytes, at } = this
    bytes[at] = length >> 16
    bytes[at + 1] = (length >> 8) & 255
    bytes[at + 2] = length & 255
    bytes[at + 3] = kind.type
    bytes[at + 4] = kind.flags
    this.number(at + 5, stream)
    this.at = at + FRAME_HEAD_BYTES
  }

  private number(at: number, value: number): void {
    const { bytes } = this
    bytes[at] = value >>> 24
    bytes[at + 1] = (value >>> 16) & 255
    bytes[at + 2] = (value >>> 8) & 255
    bytes[at + 3] = value & 255
  }

  private need(count: number): void {
    if (!this.isScheduled) {
      this.isScheduled = true
      setImmediate(this.flushLater)
    }
    if (this.at + count > BYTES_MAX) this.flush()
    const length = this.at + count
    if (length <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length, BYTES_AT_FIRST))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }
}
