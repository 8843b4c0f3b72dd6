// A call with several requests or responses: passes each complete message to the method, but none
// while responses are pending. Independent of the messages.
import type { CallListener, CallStream } from './http2/call-stream.ts'
import type { Encoding } from './call-headers.ts'
import { MessageReader } from './message-reader.ts'
import type { CallFault } from './http2/status-codes.ts'

/** Handles the messages of one call. */
export interface StreamingMethod {
  /** Handles a message; a returned fault aborts the call. */
  message(message: Buffer): CallFault | undefined
  /** Called after the last request; a returned fault aborts the call. */
  halfClosed(): CallFault | undefined
  /** Called when the call is closed by either side. */
  closed?(): void
}

/** The dependencies that streaming calls share. */
export interface StreamingDeps {
  /** Opens the method; messages that arrive before a promise resolves stay buffered. */
  readonly open: (stream: CallStream) => StreamingMethod | Promise<StreamingMethod>
  /** Called with every internal error: a defect of the server. */
  readonly onDefect: (error: unknown) => void
}

const incomplete: CallFault = { code: 'INTERNAL', details: 'the last message is incomplete' }
const defect: CallFault = { code: 'INTERNAL', details: 'the call failed' }

/** Listens to the stream of one call. */
export class StreamingCall implements CallListener {
  private readonly stream: CallStream
  /** Undefined until it is open. */
  private method: StreamingMethod | undefined
  private readonly reader: MessageReader
  private readonly onDefect: (error: unknown) => void
  private isHalfClosed = false
  private hasReportedEnd = false
  private isDecompressing = false
  private isDeferred = false

  constructor(deps: StreamingDeps, stream: CallStream, encoding: Encoding) {
    this.stream = stream
    this.reader = new MessageReader(stream.messageBudget, encoding)
    this.onDefect = deps.onDefect
    const method = deps.open(stream)
    if (method instanceof Promise) void this.awaitMethod(method)
    else this.method = method
    stream.handlerDone() // frees the slot as soon as the stream is closed
  }

  receive(bytes: Buffer, endStream: boolean): void {
    if (this.stream.isClosed) return
    if (endStream) this.isHalfClosed = true
    const fault = bytes.length === 0 ? undefined : this.reader.add(bytes)
    if (fault === undefined) this.advance()
    else this.stream.reject(fault)
  }

  drained(): void {
    this.advance()
    if (!this.stream.hasPendingOutput) this.stream.sendWindowUpdate()
  }

  closed(): void {
    if (!this.isDecompressing) this.reader.clear()
    this.guard(() => {
      this.method?.closed?.()
      return undefined
    })
  }

  private async awaitMethod(opening: Promise<StreamingMethod>): Promise<void> {
    try {
      this.method = await opening
    } catch (error) {
      this.onDefect(error)
      this.stream.reject(defect)
      return
    }
    this.advance()
  }

  private advance(): void {
    const { isClosed, hasPendingOutput } = this.stream
    const isWaiting = this.method === undefined || this.isDecompressing || this.isDeferred
    if (isClosed || hasPendingOutput || isWaiting) return
    const message = this.reader.next(() => !this.stream.isClosed)
    if (message === undefined) this.finishIfDone()
    else if (message instanceof Promise) void this.decompress(message)
    else {
      this.deliver(message)
      this.advanceLater()
    }
  }

  /** Handles each message in its own time slice, because each may take long. */
  private advanceLater(): void {
    this.isDeferred = true
    this.stream.runLater(() => {
      this.isDeferred = false
      this.advance()
    })
  }

  private async decompress(decompressing: Promise<Buffer | CallFault>): Promise<void> {
    this.isDecompressing = true
    const message = await decompressing
    this.isDecompressing = false
    if (this.stream.isClosed) {
      this.reader.clear()
      return
    }
    this.deliver(message)
    this.advanceLater()
  }

  private deliver(message: Buffer | CallFault): void {
    this.guard(() => (Buffer.isBuffer(message) ? this.method?.message(message) : message))
  }

  /** A defect in a call aborts this call only. */
  private guard(act: () => CallFault | undefined): void {
    try {
      const fault = act()
      if (fault !== undefined) this.stream.reject(fault)
    } catch (error) {
      this.onDefect(error)
      this.stream.reject(defect)
    }
  }

  private finishIfDone(): void {
    if (!this.isHalfClosed || this.hasReportedEnd) return
    this.hasReportedEnd = true
    this.guard(() => (this.reader.bufferedBytes > 0 ? incomplete : this.method?.halfClosed()))
  }
}
