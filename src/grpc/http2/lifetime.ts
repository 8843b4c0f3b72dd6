// The keepalive and shutdown of an HTTP/2 connection: pings a silent client, shuts down gracefully
// with two GOAWAY frames so that no call is lost (RFC 9113 §6.8), and destroys the socket if the
// client exceeds a deadline. Independent of streams.
import type { Duplex } from 'node:stream'
import type { FrameOutput } from './frame-output.ts'
import { errorCodes, MAX_STREAM_ID, sentFrames } from './frames.ts'

/** Maximum time until the connection preface is complete. */
const PREFACE_MS_MAX = 10_000
/** A client that is silent for this long is pinged. */
const KEEPALIVE_TIME_MS = 60_000
/** A client that sends nothing within this time after the ping is disconnected. */
const KEEPALIVE_TIMEOUT_MS = 20_000
/** A client that does not read its output for this long is disconnected. */
const OUTPUT_FULL_MS_MAX = 20_000
/** Time from the first GOAWAY to the final one, unless the ping is acknowledged earlier. */
const FINAL_GOAWAY_MS_MAX = 1000
/** Time from the server's close to the destruction of the socket. */
const CLOSE_MS_MAX = 1000
/** Bytes that a client may still send after the server's close. */
const DISCARDED_BYTES_MAX = 256 * 1024
const keepalivePing = Buffer.from('liveness')
const shutdownPing = Buffer.from('shutdown')

/** The lifetime of one connection. */
export class Lifetime {
  /** Whether either side has closed the connection: further input is discarded. */
  isClosed = false
  /** Whether the final GOAWAY, with the last processed stream, has been sent. */
  isFinalGoawaySent = false
  private readonly socket: Duplex
  private readonly output: FrameOutput
  private readonly startedMs: number
  private lastReceivedMs: number
  private pingedMs: number | undefined
  private outputFullSinceMs: number | undefined
  private shutdownMs: number | undefined
  private closedMs: number | undefined
  private maySendFinalGoaway = false
  private isBacklogged = false
  private discarded = 0

  constructor(socket: Duplex, output: FrameOutput, nowMs: number) {
    this.socket = socket
    this.output = output
    this.startedMs = nowMs
    this.lastReceivedMs = nowMs
    socket.on('drain', () => {
      output.drained()
      this.outputFullSinceMs = undefined
      this.updateFlow()
    })
  }

  /** Records that data was received. */
  received(nowMs: number): void {
    this.lastReceivedMs = nowMs
    this.pingedMs = undefined
  }

  /** Handles a PING ack. */
  pingAcknowledged(payload: Buffer): void {
    if (this.shutdownMs === undefined || !payload.equals(shutdownPing)) return
    this.maySendFinalGoaway = true
  }

  /** Counts input that is discarded after the close; disconnects a client that sends too much. */
  discard(bytes: number): void {
    this.discarded += bytes
    if (this.discarded > DISCARDED_BYTES_MAX) this.socket.destroy()
  }

  /** Pauses the socket while input is backlogged or the client does not read its output. */
  setBacklogged(isBacklogged: boolean): void {
    this.isBacklogged = isBacklogged
    this.updateFlow()
  }

  private updateFlow(): void {
    if (this.isClosed) return
    const mustPause = this.isBacklogged || this.output.isFull
    if (mustPause === this.socket.isPaused()) return
    if (mustPause) this.socket.pause()
    else this.socket.resume()
  }

  /** Sends the first GOAWAY; streams that the client has already opened are still accepted. */
  startGracefulShutdown(nowMs: number): void {
    if (this.shutdownMs !== undefined || this.isClosed) return
    this.shutdownMs = nowMs
    this.output.goaway(MAX_STREAM_ID, errorCodes.noError)
    this.output.frame(sentFrames.ping, 0, shutdownPing)
  }

  /** Sends the final GOAWAY once, after the ack of the shutdown ping or after 1 s. */
  sendFinalGoaway(lastStreamId: number): void {
    if (!this.maySendFinalGoaway || this.isFinalGoawaySent || this.isClosed) return
    this.isFinalGoawaySent = true
    this.output.goaway(lastStreamId, errorCodes.noError)
  }

  /** Flushes the output and closes the connection. */
  close(nowMs: number): void {
    if (this.isClosed) return
    this.isClosed = true
    this.closedMs = nowMs
    this.output.flush()
    this.socket.end()
    this.socket.resume()
  }

  private isTimedOut(nowMs: number, hasPreface: boolean): boolean {
    return (
      (!hasPreface && nowMs - this.startedMs > PREFACE_MS_MAX) ||
      nowMs - (this.pingedMs ?? nowMs) > KEEPALIVE_TIMEOUT_MS ||
      nowMs - (this.outputFullSinceMs ?? nowMs) > OUTPUT_FULL_MS_MAX ||
      nowMs - (this.closedMs ?? nowMs) > CLOSE_MS_MAX
    )
  }

  /** Enforces the deadlines. */
  checkDeadlines(nowMs: number, hasPreface: boolean): void {
    const silentMs = nowMs - this.lastReceivedMs
    this.output.updateBudget()
    if (this.output.isFull) this.outputFullSinceMs ??= nowMs
    if (this.isTimedOut(nowMs, hasPreface)) {
      this.socket.destroy()
      return
    }
    if (this.isClosed) return
    if (silentMs > KEEPALIVE_TIME_MS && this.pingedMs === undefined && hasPreface) {
      this.pingedMs = nowMs
      this.output.frame(sentFrames.ping, 0, keepalivePing)
    }
    if (nowMs - (this.shutdownMs ?? nowMs) > FINAL_GOAWAY_MS_MAX) this.maySendFinalGoaway = true
  }
}
