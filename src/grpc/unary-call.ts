// A call with one request and one answer, over a stream: collects the message, has it answered, and
// says what is wrong with the call where it is none. Knows no message.
import type { CallListener, CallStream } from './http2/call-stream.ts'
import type { Packing } from './call-head.ts'
import { MessageReader, wholeMessage } from './message-reader.ts'
import type { CallFault, UnaryAnswer } from './http2/status-codes.ts'

/** A method with one request and one answer. */
export type UnaryMethod = (message: Buffer) => UnaryAnswer | Promise<UnaryAnswer>

/** What unary calls share. */
export interface UnaryDeps {
  readonly method: UnaryMethod
  /** Told of errors that are no client's. */
  readonly onDefect: (error: unknown) => void
}

/** A message costs a unit of the connection's budget for each of these. */
const LARGE_BYTES = 32 * 1024
/** While it is decided, a message of more bytes counts for this many times as much, to a bound. */
const HELD_BYTES_MIN = 8 * 1024
const READ_FACTOR = 8
const HELD_BYTES_MAX = 8 * 1024 * 1024
const tooMuch: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many large messages are under way',
}
const notOne: CallFault = { code: 'UNIMPLEMENTED', details: 'this method takes one message' }
const notWhole: CallFault = { code: 'INTERNAL', details: 'the message is not whole' }
const defect: CallFault = { code: 'INTERNAL', details: 'the call could not be answered' }

/** Listens to the stream of one call. */
export class UnaryCall implements CallListener {
  private readonly deps: UnaryDeps
  private readonly stream: CallStream
  private readonly packing: Packing
  private reader: MessageReader | undefined
  private isRunning = false

  constructor(deps: UnaryDeps, stream: CallStream, packing: Packing) {
    this.deps = deps
    this.stream = stream
    this.packing = packing
  }

  take(bytes: Buffer, isLast: boolean): void {
    if (this.stream.isOver) return
    const message = isLast && this.reader === undefined ? wholeMessage(bytes) : undefined
    if (message === undefined) this.collect(bytes, isLast)
    else void this.run(message)
  }

  over(): void {
    if (this.isRunning) return // its bytes count until it is unpacked or dropped
    this.reader?.clear()
    this.stream.done()
  }

  private collect(bytes: Buffer, isLast: boolean): void {
    const reader = (this.reader ??= new MessageReader(this.stream.messages, this.packing))
    const fault = reader.add(bytes)
    const { nextBytes } = reader
    if (fault !== undefined) this.stream.refuse(fault)
    else if (nextBytes === undefined ? isLast : reader.rest > nextBytes) this.stream.refuse(notOne)
    else if (isLast) {
      const message = reader.next(() => !this.stream.isOver)
      // Its bytes count until it is unpacked: it may have to wait for its turn.
      if (!(message instanceof Promise)) reader.clear()
      if (message === undefined) this.stream.refuse(notWhole)
      else void this.run(message)
    }
  }

  /** What a message is read into counts until it is answered. */
  private async answer(message: Buffer): Promise<void> {
    const { stream } = this
    const { length } = message
    const held = length < HELD_BYTES_MIN ? 0 : Math.min(length * READ_FACTOR, HELD_BYTES_MAX)
    if (held > 0 && !stream.messages.take(held)) {
      stream.refuse(tooMuch)
      return
    }
    try {
      const answer = await this.deps.method(message)
      if (answer.code === 'OK') stream.answer(answer.message)
      else stream.refuse(answer)
    } finally {
      if (held > 0) stream.messages.give(held)
    }
  }

  private async run(given: Buffer | CallFault | Promise<Buffer | CallFault>): Promise<void> {
    this.isRunning = true
    const { stream } = this
    try {
      const message = given instanceof Promise ? await given : given
      this.reader?.clear()
      if (!Buffer.isBuffer(message)) stream.refuse(message)
      else if (!stream.isOver) {
        stream.spend(Math.floor(message.length / LARGE_BYTES))
        await this.answer(message)
      }
    } catch (error) {
      this.deps.onDefect(error)
      stream.refuse(defect)
    }
    stream.done()
  }
}
