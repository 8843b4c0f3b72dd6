// A call with one request and one response: collects the message, passes it to the method, and
// rejects invalid calls. Independent of the messages.
import type { CallListener, CallStream } from './http2/call-stream.ts'
import type { Encoding } from './call-headers.ts'
import { MessageReader, wholeMessage } from './message-reader.ts'
import type { CallFault, UnaryResponse } from './http2/status-codes.ts'

/** A method with one request and one response. */
export type UnaryMethod = (message: Buffer) => UnaryResponse | Promise<UnaryResponse>

/** The dependencies that unary calls share. */
export interface UnaryDeps {
  readonly method: UnaryMethod
  /** Called with every internal error: a defect of the server. */
  readonly onDefect: (error: unknown) => void
}

/** A message spends one unit of the abuse budget per this many bytes. */
const LARGE_BYTES = 32 * 1024
/**
 * Memory of a message while its call is decided, as counted in the budget: 0 below HELD_BYTES_MIN,
 * else PARSED_SIZE_FACTOR times its size, at most HELD_BYTES_MAX.
 */
const HELD_BYTES_MIN = 8 * 1024
const PARSED_SIZE_FACTOR = 8
const HELD_BYTES_MAX = 8 * 1024 * 1024
const overBudget: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many large messages are in flight',
}
/** The fault of a call with no message, or with several. */
export const singleMessage: CallFault = {
  code: 'UNIMPLEMENTED',
  details: 'the method accepts exactly one message',
}
const incomplete: CallFault = { code: 'INTERNAL', details: 'the message is incomplete' }
const defect: CallFault = { code: 'INTERNAL', details: 'the call failed' }

/** Listens to the stream of one call. */
export class UnaryCall implements CallListener {
  private readonly deps: UnaryDeps
  private readonly stream: CallStream
  private readonly encoding: Encoding
  private reader: MessageReader | undefined
  private isRunning = false

  constructor(deps: UnaryDeps, stream: CallStream, encoding: Encoding) {
    this.deps = deps
    this.stream = stream
    this.encoding = encoding
  }

  receive(bytes: Buffer, endStream: boolean): void {
    if (this.stream.isClosed) return
    const message = endStream && this.reader === undefined ? wholeMessage(bytes) : undefined
    if (message === undefined) this.collect(bytes, endStream)
    else void this.run(message)
  }

  closed(): void {
    if (this.isRunning) return // `run` then releases the memory and the slot
    this.reader?.clear()
    this.stream.handlerDone()
  }

  private collect(bytes: Buffer, endStream: boolean): void {
    const reader = (this.reader ??= new MessageReader(this.stream.messageBudget, this.encoding))
    const fault = reader.add(bytes)
    const { nextBytes } = reader
    if (fault !== undefined) this.stream.reject(fault)
    else if (endStream && nextBytes === undefined && reader.bufferedBytes > 0) {
      this.stream.reject(incomplete) // its prefix is cut off
    } else if (nextBytes === undefined ? endStream : reader.bufferedBytes > nextBytes) {
      this.stream.reject(singleMessage)
    } else if (endStream) {
      const message = reader.next(() => !this.stream.isClosed)
      // Its bytes stay counted until it is decompressed, which may wait for a thread.
      if (!(message instanceof Promise)) reader.clear()
      if (message === undefined) this.stream.reject(incomplete)
      else void this.run(message)
    }
  }

  /** Counts the memory of the parsed message until the response is sent. */
  private async respond(message: Buffer): Promise<void> {
    const { stream } = this
    const { length } = message
    const held = length < HELD_BYTES_MIN ? 0 : Math.min(length * PARSED_SIZE_FACTOR, HELD_BYTES_MAX)
    if (held > 0 && !stream.messageBudget.acquire(held)) {
      stream.reject(overBudget)
      return
    }
    try {
      const response = await this.deps.method(message)
      if (response.code === 'OK') stream.respond(response.message)
      else stream.reject(response)
    } finally {
      if (held > 0) stream.messageBudget.release(held)
    }
  }

  private async run(given: Buffer | CallFault | Promise<Buffer | CallFault>): Promise<void> {
    this.isRunning = true
    const { stream } = this
    try {
      const message = given instanceof Promise ? await given : given
      this.reader?.clear()
      if (!Buffer.isBuffer(message)) stream.reject(message)
      else if (!stream.isClosed) {
        stream.spend(Math.floor(message.length / LARGE_BYTES))
        await this.respond(message)
      }
    } catch (error) {
      this.deps.onDefect(error)
      stream.reject(defect)
    }
    stream.handlerDone()
  }
}
