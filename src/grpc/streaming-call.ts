// A call with several requests or answers, over a stream: gives each message as it comes whole, and
// none while answers wait to be read. Knows no message.
import type { CallListener, CallStream } from './http2/call-stream.ts'
import type { Packing } from './call-head.ts'
import { MessageReader } from './message-reader.ts'
import type { CallFault } from './http2/status-codes.ts'

/** What becomes of the messages of one call. */
export interface StreamingMethod {
  /** Takes a message; what comes back ends the call. */
  message(message: Buffer): CallFault | undefined
  /** The caller sends no more; what comes back ends the call. */
  ended(): CallFault | undefined
  /** The call is over, whatever ended it. */
  over?(): void
}

/** What streaming calls share. */
export interface StreamingDeps {
  readonly open: (stream: CallStream) => StreamingMethod
  /** Told of errors that are no client's. */
  readonly onDefect: (error: unknown) => void
}

const notWhole: CallFault = { code: 'INTERNAL', details: 'a message is not whole' }
const defect: CallFault = { code: 'INTERNAL', details: 'the call could not be answered' }

/** Listens to the stream of one call. */
export class StreamingCall implements CallListener {
  private readonly stream: CallStream
  private readonly method: StreamingMethod
  private readonly reader: MessageReader
  private readonly onDefect: (error: unknown) => void
  private hasEnded = false
  private hasToldEnd = false
  private isUnpacking = false
  private isPutOff = false

  constructor(deps: StreamingDeps, stream: CallStream, packing: Packing) {
    this.stream = stream
    this.method = deps.open(stream)
    this.reader = new MessageReader(stream.messages, packing)
    this.onDefect = deps.onDefect
    stream.done() // it works while it is open, and no longer
  }

  take(bytes: Buffer, isLast: boolean): void {
    if (this.stream.isOver) return
    if (isLast) this.hasEnded = true
    const fault = bytes.length === 0 ? undefined : this.reader.add(bytes)
    if (fault === undefined) this.go()
    else this.stream.refuse(fault)
  }

  drained(): void {
    this.go()
    if (!this.stream.isBlocked) this.stream.openWindow()
  }

  over(): void {
    if (!this.isUnpacking) this.reader.clear()
    this.guard(() => {
      this.method.over?.()
      return undefined
    })
  }

  private go(): void {
    if (this.stream.isOver || this.stream.isBlocked || this.isUnpacking || this.isPutOff) return
    const message = this.reader.next(() => !this.stream.isOver)
    if (message === undefined) this.endIfDone()
    else if (message instanceof Promise) void this.unpack(message)
    else {
      this.give(message)
      this.goLater()
    }
  }

  /** Each message has its turn of the event loop. */
  private goLater(): void {
    this.isPutOff = true
    this.stream.later(() => {
      this.isPutOff = false
      this.go()
    })
  }

  private async unpack(packed: Promise<Buffer | CallFault>): Promise<void> {
    this.isUnpacking = true
    const message = await packed
    this.isUnpacking = false
    if (this.stream.isOver) {
      this.reader.clear()
      return
    }
    this.give(message)
    this.goLater()
  }

  private give(message: Buffer | CallFault): void {
    this.guard(() => (Buffer.isBuffer(message) ? this.method.message(message) : message))
  }

  /** A defect of one call is the end of this call alone. */
  private guard(act: () => CallFault | undefined): void {
    try {
      const fault = act()
      if (fault !== undefined) this.stream.refuse(fault)
    } catch (error) {
      this.onDefect(error)
      this.stream.refuse(defect)
    }
  }

  private endIfDone(): void {
    if (!this.hasEnded || this.hasToldEnd) return
    this.hasToldEnd = true
    this.guard(() => (this.reader.rest > 0 ? notWhole : this.method.ended()))
  }
}
