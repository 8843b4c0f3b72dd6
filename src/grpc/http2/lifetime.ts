// How a connection of HTTP/2 goes on and ends: it is pinged when it is silent, told to go in two
// steps so that no call is lost (RFC 9113 §6.8), and cut when its client does not keep up. Knows no
// stream.
import type { Duplex } from 'node:stream'
import type { FrameOutput } from './frame-output.ts'
import { errorCodes, sentFrames, WINDOW_BYTES_MAX } from './frames.ts'

/** A client has so long to say that it speaks HTTP/2. */
const PREFACE_MS_MAX = 10_000
/** A connection that sends nothing is asked whether it lives, and is cut without an answer. */
const SILENCE_MS_MAX = 60_000
const ANSWER_MS_MAX = 20_000
/** A client that does not read what it is sent is cut. */
const FULL_MS_MAX = 20_000
/** Until a client must know that it has to go. */
const LEAVE_MS_MAX = 1000
/** Until a connection that we have ended is gone. */
const END_MS_MAX = 1000
/** What a client may still send on a connection that we have ended. */
const DISCARDED_BYTES_MAX = 256 * 1024
const silencePing = Buffer.from('are you?')
const leavePing = Buffer.from('leaving.')

/** The life of one connection. */
export class Lifetime {
  /** Nothing that comes is read any more. */
  isOver = false
  /** The client has been told the last stream that is taken. */
  hasLeft = false
  private readonly socket: Duplex
  private readonly output: FrameOutput
  private readonly begunMs: number
  private heardMs: number
  private pingedMs: number | undefined
  private fullMs: number | undefined
  private leavingMs: number | undefined
  private endedMs: number | undefined
  private mayTellLast = false
  private isHeld = false
  private discarded = 0

  constructor(socket: Duplex, output: FrameOutput, nowMs: number) {
    this.socket = socket
    this.output = output
    this.begunMs = nowMs
    this.heardMs = nowMs
    socket.on('drain', () => {
      output.drained()
      this.fullMs = undefined
      this.flow()
    })
  }

  /** Something came. */
  heard(nowMs: number): void {
    this.heardMs = nowMs
    this.pingedMs = undefined
  }

  /** A ping of ours was answered. */
  answered(payload: Buffer): void {
    if (this.leavingMs !== undefined && payload.equals(leavePing)) this.mayTellLast = true
  }

  /** What comes after the end is dropped; a client that goes on sending is cut. */
  discard(bytes: number): void {
    this.discarded += bytes
    if (this.discarded > DISCARDED_BYTES_MAX) this.socket.destroy()
  }

  /** Reads no further while what came is not worked on, or the client does not read. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld
    this.flow()
  }

  private flow(): void {
    if (this.isOver) return
    if (this.output.isFull) this.fullMs ??= this.heardMs
    const mustPause = this.isHeld || this.output.isFull
    if (mustPause === this.socket.isPaused()) return
    if (mustPause) this.socket.pause()
    else this.socket.resume()
  }

  /** Tells the client to go; it may not have heard of it while its next calls are on their way. */
  leave(nowMs: number): void {
    if (this.leavingMs !== undefined || this.isOver) return
    this.leavingMs = nowMs
    this.output.goAway(WINDOW_BYTES_MAX, errorCodes.none)
    this.output.frame(sentFrames.ping, 0, leavePing)
  }

  /** Tells the client the last stream that is taken, once, if it knows that it has to go. */
  tellLast(lastStream: number): void {
    if (!this.mayTellLast || this.hasLeft || this.isOver) return
    this.hasLeft = true
    this.output.goAway(lastStream, errorCodes.none)
  }

  /** Sends what there is and ends the connection. */
  end(nowMs: number): void {
    if (this.isOver) return
    this.isOver = true
    this.endedMs = nowMs
    this.output.flush()
    this.socket.end()
    this.socket.resume()
  }

  /** Looks after what is due. */
  look(nowMs: number, hasPreface: boolean): void {
    const silentMs = nowMs - this.heardMs
    const isLate =
      (!hasPreface && nowMs - this.begunMs > PREFACE_MS_MAX) ||
      nowMs - (this.pingedMs ?? nowMs) > ANSWER_MS_MAX ||
      nowMs - (this.fullMs ?? nowMs) > FULL_MS_MAX ||
      nowMs - (this.endedMs ?? nowMs) > END_MS_MAX
    if (isLate) {
      this.socket.destroy()
      return
    }
    if (this.isOver) return
    if (silentMs > SILENCE_MS_MAX && this.pingedMs === undefined && hasPreface) {
      this.pingedMs = nowMs
      this.output.frame(sentFrames.ping, 0, silencePing)
    }
    if (nowMs - (this.leavingMs ?? nowMs) > LEAVE_MS_MAX) this.mayTellLast = true
  }
}
