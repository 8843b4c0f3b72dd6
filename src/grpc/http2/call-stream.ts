// One call on an HTTP/2 connection: sends responses within the client's flow-control windows. The
// connection removes a stream once its response is complete or either side has reset it;
// ClosingStreams then accepts the rest of the request. Does not parse messages.
import { copyOf } from './copy-of.ts'
import type { Budgets, Budget } from './process-bounds.ts'
import { type CallFault, statusCodes } from './status-codes.ts'
import type { ResponseHeaders } from './response-headers.ts'
import { encodeStatusMessage } from './status-message.ts'
import type { FrameOutput } from './frame-output.ts'
import {
  type ErrorCode,
  errorCodes,
  DEFAULT_MAX_FRAME_SIZE,
  sentFrames,
  INITIAL_WINDOW_SIZE,
} from './frames.ts'

/** What a stream uses of its connection. */
export interface StreamHost {
  readonly output: FrameOutput
  readonly responseHeaders: ResponseHeaders
  /** The connection's send window in bytes. */
  sendWindow: number
  /** The connection's budgets by kind. */
  readonly budgets: Budgets
  /** Called when the response of a call is complete, successful or not. */
  responded(stream: CallStream, isOk: boolean): void
  /** Spends from the abuse budget, for work that is unproductive or expensive. */
  spend(amount: number): void
  /** Runs the job in a later time slice of the connection. */
  runLater(job: () => void): void
  /** Sends RST_STREAM, and spends from the abuse budget unless the error is internal. */
  reset(stream: CallStream, code: ErrorCode): void
  /** Called when the stream is closed. */
  remove(stream: CallStream): void
  /** Called when a stream is closed and its handler is done. */
  freeSlot(): void
  /** Called when the stream waits for the connection's window or for the socket to drain. */
  block(stream: CallStream): void
}

/** Handles a call. */
export interface CallListener {
  /** Receives a chunk of the request; the listener may keep the bytes. */
  receive(bytes: Buffer, endStream: boolean): void
  /** Called when all pending output has been sent. */
  drained?(): void
  /** Called once, when the stream is closed by either side. */
  closed(): void
}

/** A stream. Its methods may be called at any time, and do nothing once it is closed. */
export class CallStream {
  readonly id: number
  /** The stream's send window in bytes. */
  sendWindow: number
  /** Bytes of DATA received since the last WINDOW_UPDATE. */
  bytesReceived = 0
  /** The client has sent END_STREAM: the stream is half-closed (remote). */
  isRemoteClosed = false
  /** The response is complete or the stream was reset: further frames are dropped. */
  isClosed = false
  /** Bytes of the body still to receive; `undefined` without content-length. */
  bodyBytesLeft: number | undefined
  /** The call's deadline on the monotonic clock. */
  deadlineMs = Infinity
  listener: CallListener | undefined
  private readonly host: StreamHost
  private isHandlerRunning = true
  private hasSentHeaders = false
  private isFinishing = false
  private pendingOutput: Buffer[] | undefined
  private pendingBytes = 0

  constructor(host: StreamHost, id: number, sendWindow: number) {
    this.host = host
    this.id = id
    this.sendWindow = sendWindow
  }

  /** The connection's budget for incomplete messages. */
  get messageBudget(): Budget {
    return this.host.budgets.messages
  }

  /** Spends from the abuse budget, for work that is unproductive or expensive. */
  spend(amount: number): void {
    this.host.spend(amount)
  }

  /** Runs the job in a later time slice, if the connection is still open. */
  runLater(job: () => void): void {
    this.host.runLater(job)
  }

  /** Whether the handler is still running; the client may have cancelled the call. */
  get isInProgress(): boolean {
    return this.isHandlerRunning
  }

  /** Whether written output is still pending. */
  get hasPendingOutput(): boolean {
    return this.pendingOutput !== undefined
  }

  /** Sends the only message of the response and completes the call. */
  respond(message: Buffer): void {
    if (this.isClosed) return
    const { host } = this
    const bytes = 5 + message.length
    if (bytes > Math.min(this.sendWindow, host.sendWindow, DEFAULT_MAX_FRAME_SIZE)) {
      this.write(message)
      this.end()
      return
    }
    this.sendHeaders()
    host.sendWindow -= bytes
    host.output.message(this.id, message)
    this.sendTrailers(host.responseHeaders.trailers())
  }

  /** Sends one of several messages as soon as the windows allow. */
  write(message: Buffer): void {
    if (this.isClosed) return
    this.sendHeaders()
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    const bytes = prefix.length + message.length
    if (!this.host.budgets.output.acquire(bytes)) {
      this.reset(errorCodes.enhanceYourCalm)
      return
    }
    this.pendingBytes += bytes
    this.pendingOutput ??= []
    this.pendingOutput.push(copyOf(prefix, message))
    this.sendPending()
  }

  /** Completes a successful call after all pending output. */
  end(): void {
    if (this.isClosed) return
    this.isFinishing = true
    if (this.pendingOutput === undefined) this.finish()
  }

  /** Completes the call with an error status; drops pending output. */
  reject(
    { code, details }: CallFault,
    extraFields: readonly (readonly [string, string])[] = [],
  ): void {
    if (this.isClosed) return
    const fields = [
      ['grpc-status', String(statusCodes[code])],
      ['grpc-message', encodeStatusMessage(details)],
      ...extraFields,
    ] as const
    if (code === 'UNIMPLEMENTED' || code === 'RESOURCE_EXHAUSTED') this.host.spend(1)
    this.sendTrailers(this.host.responseHeaders.fields(fields, !this.hasSentHeaders), false)
  }

  /** Responds to a request that is not gRPC with an HTTP status. */
  rejectHttp(status: number): void {
    if (this.isClosed) return
    this.host.spend(1)
    this.sendTrailers(this.host.responseHeaders.status(status), false)
  }

  /** Resets the stream. */
  reset(code: ErrorCode): void {
    if (this.isClosed) return
    this.host.reset(this, code)
    this.close()
  }

  /** Called when the client has reset the stream or the connection is closed. */
  destroy(): void {
    this.close()
  }

  /** Called when the handler is done: the slot is freed once the stream is closed. */
  handlerDone(): void {
    if (!this.isHandlerRunning) return
    this.isHandlerRunning = false
    if (this.isClosed) this.host.freeSlot()
  }

  /** Counts body bytes; resets the stream and returns false if content-length differs (§8.1.1). */
  countBody(bytes: number, endStream: boolean): boolean {
    if (this.bodyBytesLeft === undefined) return true
    this.bodyBytesLeft -= bytes
    if (endStream ? this.bodyBytesLeft === 0 : this.bodyBytesLeft >= 0) return true
    this.reset(errorCodes.protocol)
    return false
  }

  /** Sends WINDOW_UPDATE for the received bytes once they are half of the window. */
  sendWindowUpdate(): void {
    const { bytesReceived } = this
    if (this.isClosed || this.isRemoteClosed || bytesReceived < INITIAL_WINDOW_SIZE / 2) return
    this.bytesReceived = 0
    this.host.output.windowUpdate(this.id, bytesReceived)
  }

  /** Resumes sending. */
  pump(): void {
    if (!this.hasPendingOutput) return
    this.sendPending()
    if (this.pendingOutput === undefined) this.drained()
  }

  private drained(): void {
    if (!this.isClosed) this.listener?.drained?.()
  }

  /** Sends as much pending output as the windows allow. */
  private sendPending(): void {
    const { host, pendingOutput = [] } = this
    for (let first = pendingOutput[0]; first !== undefined; first = pendingOutput[0]) {
      if (host.sendWindow <= 0 || host.output.isFull) {
        host.block(this)
        return
      }
      const bytes = Math.min(first.length, this.sendWindow, host.sendWindow, DEFAULT_MAX_FRAME_SIZE)
      if (bytes <= 0) return // resumes with the stream's own WINDOW_UPDATE
      this.sendWindow -= bytes
      host.sendWindow -= bytes
      host.budgets.output.release(bytes)
      this.pendingBytes -= bytes
      host.output.frame(sentFrames.data, this.id, first.subarray(0, bytes))
      if (bytes < first.length) pendingOutput[0] = first.subarray(bytes)
      else pendingOutput.shift()
    }
    this.pendingOutput = undefined
    if (this.isFinishing) this.finish()
  }

  private sendHeaders(): void {
    if (this.hasSentHeaders) return
    this.hasSentHeaders = true
    const block = this.host.responseHeaders.headers()
    this.host.output.frame(sentFrames.headers, this.id, block)
  }

  private finish(): void {
    this.sendHeaders()
    this.sendTrailers(this.host.responseHeaders.trailers())
  }

  private sendTrailers(block: Buffer, isOk = true): void {
    if (this.isClosed) return
    this.host.output.frame(sentFrames.trailers, this.id, block)
    this.host.responded(this, isOk)
    this.close()
  }

  private close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.pendingOutput = undefined
    this.host.budgets.output.release(this.pendingBytes)
    this.pendingBytes = 0
    this.host.remove(this)
    if (!this.isHandlerRunning) this.host.freeSlot()
    this.listener?.closed()
  }
}
