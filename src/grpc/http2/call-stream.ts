// One call on a connection of HTTP/2: what is sent on it and how much its client still takes. It is
// gone from the connection once both sides have ended it; reads no message, decides nothing.
import type { Allowances, Budget } from './process-bounds.ts'
import { type CallFault, statusCodes } from './status-codes.ts'
import type { AnswerHeaders } from './answer-headers.ts'
import { renderDetails } from './details.ts'
import type { FrameOutput } from './frame-output.ts'
import { type ErrorCode, errorCodes, FRAME_BYTES_MAX, sentFrames, WINDOW_BYTES } from './frames.ts'

/** What a stream needs of its connection. */
export interface StreamHost {
  readonly output: FrameOutput
  readonly answerHeaders: AnswerHeaders
  /** Bytes of data that the client takes, of all streams. */
  sendWindow: number
  /** What the connection holds, of each kind. */
  readonly share: Allowances
  /** A call was answered, well or not. */
  answered(stream: CallStream, isOk: boolean): void
  /** Counts work that brings nothing, or little for its cost. */
  spend(amount: number): void
  /** Does this in a later turn of the event loop. */
  later(job: () => void): void
  /** Tells the client that the stream ends at once. */
  reset(stream: CallStream, code: ErrorCode): void
  /** The stream is over for both sides. */
  forget(stream: CallStream): void
  /** Nothing more is done for a stream that is over. */
  free(): void
  /** The stream waits for what all wait for: that the client takes or reads more. */
  block(stream: CallStream): void
}

/** What deals with a call. */
export interface CallListener {
  /** Some of the request; the bytes are its own for good. */
  take(bytes: Buffer, isLast: boolean): void
  /** All that had to wait has been sent. */
  drained?(): void
  /** The stream is over, by whichever side; told once. */
  over(): void
}

/** A stream; every method may be called at any time, and does nothing once it is over. */
export class CallStream {
  readonly id: number
  /** Bytes of data that the client takes. */
  sendWindow: number
  /** Bytes of data that came since the client was last told that it may send more. */
  bytesTaken = 0
  /** The client sends no more. */
  hasPeerEnded = false
  /** Neither side sends any more. */
  isOver = false
  /** Bytes of the body that are to come; undefined if the client does not say. */
  bodyBytesLeft: number | undefined
  /** When the call is to be over; monotonic. */
  untilMs = Infinity
  listener: CallListener | undefined
  private readonly host: StreamHost
  private isWorking = true
  private hasHeaders = false
  private isEnding = false
  private waiting: Buffer[] | undefined
  private waitingBytes = 0

  constructor(host: StreamHost, id: number, sendWindow: number) {
    this.host = host
    this.id = id
    this.sendWindow = sendWindow
  }

  /** What the connection may hold of messages that are not whole. */
  get messages(): Budget {
    return this.host.share.messages
  }

  /** Counts work that brings nothing, or little for its cost. */
  spend(amount: number): void {
    this.host.spend(amount)
  }

  /** Does this in a later turn of the event loop, if the connection is open then. */
  later(job: () => void): void {
    this.host.later(job)
  }

  /** Whether the call is still being worked on, though its client may have given it up. */
  get isHeld(): boolean {
    return this.isWorking
  }

  /** Whether something that was written has not been sent yet. */
  get isBlocked(): boolean {
    return this.waiting !== undefined
  }

  /** Answers the call with its only message. */
  answer(message: Buffer): void {
    if (this.isOver) return
    const { host } = this
    const bytes = 5 + message.length
    if (bytes > Math.min(this.sendWindow, host.sendWindow, FRAME_BYTES_MAX)) {
      this.write(message)
      this.end()
      return
    }
    this.sendHeaders()
    host.sendWindow -= bytes
    host.output.message(this.id, message)
    this.sendTrailers(host.answerHeaders.trailers())
  }

  /** Sends one of several messages, as soon as the client takes it. */
  write(message: Buffer): void {
    if (this.isOver) return
    this.sendHeaders()
    const head = Buffer.alloc(5)
    head.writeUInt32BE(message.length, 1)
    const bytes = head.length + message.length
    if (!this.host.share.output.take(bytes)) {
      this.reset(errorCodes.enhanceYourCalm)
      return
    }
    this.waitingBytes += bytes
    this.waiting ??= []
    this.waiting.push(Buffer.concat([head, message]))
    this.sendWaiting()
  }

  /** Ends a call that went well after what was written. */
  end(): void {
    if (this.isOver) return
    this.isEnding = true
    if (this.waiting === undefined) this.finish()
  }

  /** Ends a call that did not go well; what still waits is dropped. */
  refuse({ code, details }: CallFault, more: readonly (readonly [string, string])[] = []): void {
    if (this.isOver) return
    const fields = [
      ['grpc-status', String(statusCodes[code])],
      ['grpc-message', renderDetails(details)],
      ...more,
    ] as const
    if (code === 'UNIMPLEMENTED' || code === 'RESOURCE_EXHAUSTED') this.host.spend(1)
    this.sendTrailers(this.host.answerHeaders.fields(fields, !this.hasHeaders), false)
  }

  /** Answers what is no call of gRPC with a status of HTTP. */
  refuseHttp(status: number): void {
    if (this.isOver) return
    this.host.spend(1)
    this.sendTrailers(this.host.answerHeaders.status(status), false)
  }

  /** Ends the stream at once. */
  reset(code: ErrorCode): void {
    if (this.isOver) return
    this.host.reset(this, code)
    this.leave()
  }

  /** The client has ended the stream at once, or the connection is gone. */
  cut(): void {
    this.leave()
  }

  /** Nothing is done for the call any more: its place is free once it is over. */
  done(): void {
    if (!this.isWorking) return
    this.isWorking = false
    if (this.isOver) this.host.free()
  }

  /** Counts some of the body; resets the stream if its length differs (RFC 9113 §8.1.1). */
  takesBody(bytes: number, isLast: boolean): boolean {
    if (this.bodyBytesLeft === undefined) return true
    this.bodyBytesLeft -= bytes
    if (isLast ? this.bodyBytesLeft === 0 : this.bodyBytesLeft >= 0) return true
    this.reset(errorCodes.protocol)
    return false
  }

  /** Lets the client send as much as it did. */
  openWindow(): void {
    const { bytesTaken } = this
    if (this.isOver || this.hasPeerEnded || bytesTaken < WINDOW_BYTES / 2) return
    this.bytesTaken = 0
    this.host.output.windowUpdate(this.id, bytesTaken)
  }

  /** Goes on where it was blocked. */
  pump(): void {
    if (!this.isBlocked) return
    this.sendWaiting()
    if (this.waiting === undefined) this.drained()
  }

  private drained(): void {
    if (!this.isOver) this.listener?.drained?.()
  }

  /** Sends of what waits as much as the client takes. */
  private sendWaiting(): void {
    const { host, waiting = [] } = this
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      if (host.sendWindow <= 0 || host.output.isFull) {
        host.block(this)
        return
      }
      const bytes = Math.min(first.length, this.sendWindow, host.sendWindow, FRAME_BYTES_MAX)
      if (bytes <= 0) return // it goes on when its own window opens
      this.sendWindow -= bytes
      host.sendWindow -= bytes
      host.share.output.give(bytes)
      this.waitingBytes -= bytes
      host.output.frame(sentFrames.data, this.id, first.subarray(0, bytes))
      if (bytes < first.length) waiting[0] = first.subarray(bytes)
      else waiting.shift()
    }
    this.waiting = undefined
    if (this.isEnding) this.finish()
  }

  private sendHeaders(): void {
    if (this.hasHeaders) return
    this.hasHeaders = true
    const block = this.host.answerHeaders.headers()
    this.host.output.frame(sentFrames.headers, this.id, block)
  }

  private finish(): void {
    this.sendHeaders()
    this.sendTrailers(this.host.answerHeaders.trailers())
  }

  private sendTrailers(block: Buffer, isOk = true): void {
    if (this.isOver) return
    this.host.output.frame(sentFrames.trailers, this.id, block)
    this.host.answered(this, isOk)
    this.leave()
  }

  private leave(): void {
    if (this.isOver) return
    this.isOver = true
    this.waiting = undefined
    this.host.share.output.give(this.waitingBytes)
    this.waitingBytes = 0
    this.host.forget(this)
    if (!this.isWorking) this.host.free()
    this.listener?.over()
  }
}
