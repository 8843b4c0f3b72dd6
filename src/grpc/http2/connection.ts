// A connection of HTTP/2 from the server's side, for calls of gRPC (RFC 9113): keeps streams and
// windows, and ends with GOAWAY. What is kept is bounded. Knows no method and no message.
import type { Duplex } from 'node:stream'
import { AnswerHeaders } from './answer-headers.ts'
import { CallStream, type StreamHost } from './call-stream.ts'
import type { ConnectionDeps } from './connection-deps.ts'
import { readContentLength } from './content-length.ts'
import * as control from './control-frames.ts'
import { EarlyAnswers } from './early-answers.ts'
import { FrameOutput } from './frame-output.ts'
import { checkFrame } from './check-frame.ts'
import { type Frame, FrameReader } from './frame-reader.ts'
import * as http2 from './frames.ts'
import { type HeaderBlock, HeaderBlocks, unpadded } from './header-blocks.ts'
import { type HeaderField, HpackDecoder } from './hpack-decoder.ts'
import { Intake } from './intake.ts'
import { Lifetime } from './lifetime.ts'
import { OpenStreams } from './open-streams.ts'
import { Patience } from './patience.ts'
import type { Allowances } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'
import { HEADER_LIST_BYTES_MAX, ourSettings } from './our-settings.ts'
import { isSettings } from './read-settings.ts'
import { ReceiveWindow } from './windows.ts'

const { errorCodes, frameTypes } = http2
const fault = (why: string) => new ProtocolError(errorCodes.protocol, why)

/** Data of fewer bytes, of which there is more to come, is no way to send a message. */
const SMALL_DATA_BYTES = 64
const NOTHING = Buffer.alloc(0)

/** Speaks HTTP/2 on a socket until either side ends it. */
export class Http2Connection implements StreamHost {
  readonly output: FrameOutput
  readonly share: Allowances
  readonly answerHeaders = new AnswerHeaders()
  sendWindow = http2.WINDOW_BYTES
  private readonly deps: ConnectionDeps
  private readonly socket: Duplex
  private readonly reader = new FrameReader()
  private readonly blocks: HeaderBlocks
  private readonly decoder: HpackDecoder
  private readonly streams: OpenStreams
  private readonly early: EarlyAnswers
  private readonly patience: Patience
  private readonly lifetime: Lifetime
  private readonly intake: Intake
  private readonly received: ReceiveWindow
  private hasSettings = false
  private nowMs: number

  constructor(socket: Duplex, deps: ConnectionDeps) {
    this.socket = socket
    this.deps = deps
    this.nowMs = deps.nowMs()
    this.patience = new Patience(this.nowMs)
    const { share } = deps
    this.share = share
    this.blocks = new HeaderBlocks(share.headers)
    this.decoder = new HpackDecoder(share.headers)
    this.streams = new OpenStreams(share.streams)
    this.output = new FrameOutput(socket, share.output)
    this.early = new EarlyAnswers(this.output, share.streams)
    this.output.settings(ourSettings)
    this.received = new ReceiveWindow(this.output)
    this.lifetime = new Lifetime(socket, this.output, this.nowMs)
    const { lifetime, reader } = this
    const own = { budget: share.input, lifetime, reader, socket, connection: this }
    this.intake = new Intake({ ...deps, ...own })
    socket.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    socket.on('error', () => undefined) // its end tells
    socket.on('close', () => {
      this.lifetime.isOver = true
      this.drop()
      this.output.drained()
      deps.onGone()
    })
    socket.on('drain', () => {
      control.pumpAll(this.streams, this)
    })
  }

  /** Lets calls under way be answered and takes no new ones, once the client knows; then ends. */
  leave(): void {
    this.lifetime.leave(this.deps.nowMs())
  }

  /** Ends at once. */
  cut(): void {
    this.socket.destroy()
    this.output.drained() // what it held is free now, and not when the socket has closed
  }

  /** Ends at once, as it holds more than its share. */
  shed(): void {
    this.endWith(errorCodes.enhanceYourCalm)
    if (this.output.isFull) this.cut()
  }

  /** Looks after what is due; to be called several times a second. */
  look(nowMs: number): void {
    this.nowMs = nowMs
    this.streams.endLate(nowMs, (stream) => {
      stream.refuse({ code: 'DEADLINE_EXCEEDED', details: 'there was no time left for the call' })
    })
    this.early.look(nowMs)
    this.lifetime.look(nowMs, this.reader.hasPreface)
    if (this.blocks.isLate(nowMs) || this.intake.look(nowMs)) this.shed()
    this.endIfDone()
  }

  spend(amount: number): void {
    if (!this.patience.bear(this.nowMs, amount)) this.shed()
  }

  later(job: () => void): void {
    this.intake.later(job)
  }

  answered(stream: CallStream, isOk: boolean): void {
    if (isOk) this.patience.makeUp()
    if (!stream.hasPeerEnded) this.early.add(stream.id, this.nowMs)
  }

  forget(stream: CallStream): void {
    this.streams.forget(stream)
    this.endIfDone()
  }

  reset(stream: CallStream, code: http2.ErrorCode): void {
    this.early.reset(stream.id, code)
  }

  free(): void {
    this.streams.free()
  }

  block(stream: CallStream): void {
    this.streams.block(stream)
  }

  private endIfDone(): void {
    this.lifetime.tellLast(this.streams.last)
    if (this.streams.count === 0 && this.lifetime.hasLeft) this.lifetime.end(this.nowMs)
  }

  private read(chunk: Buffer): void {
    if (this.lifetime.isOver) {
      this.lifetime.discard(chunk.length)
      return
    }
    this.nowMs = this.deps.nowMs()
    this.lifetime.heard(this.nowMs)
    this.intake.add(chunk)
  }

  fail(error: unknown): void {
    if (!(error instanceof ProtocolError)) this.deps.onDefect(error)
    this.endWith(error instanceof ProtocolError ? error.code : errorCodes.internal)
  }

  private endWith(code: http2.ErrorCode): void {
    if (this.lifetime.isOver) return
    this.output.goAway(this.streams.last, code)
    this.lifetime.end(this.nowMs)
    this.drop()
  }

  /** Keeps nothing of what came. */
  private drop(): void {
    this.streams.cut()
    this.intake.clear()
    this.blocks.clear()
    this.decoder.clear()
    this.early.clear()
  }

  private bear(amount = 1): void {
    if (this.patience.bear(this.nowMs, amount)) return
    throw new ProtocolError(errorCodes.enhanceYourCalm, 'it asks for too much that brings nothing')
  }

  takeFrame(frame: Frame): void {
    if (this.lifetime.isOver) return
    const { type } = frame
    if (!this.hasSettings && !isSettings(frame)) throw fault('settings must come first')
    this.hasSettings = true
    checkFrame(frame)
    if (this.blocks.isBegun && type !== frameTypes.continuation) throw fault('a block breaks off')
    if (type === frameTypes.data) this.takeData(frame)
    else if (type === frameTypes.headers) this.takeBlock(this.blocks.begin(frame, this.nowMs))
    else if (type === frameTypes.continuation) this.takeBlock(this.blocks.continue(frame))
    else if (type === frameTypes.reset) this.takeReset(frame)
    else this.takeControl(frame)
  }

  private takeControl(frame: Frame): void {
    this.bear()
    if (frame.type === frameTypes.settings) control.takeSettings(frame, this.streams, this)
    else if (frame.type === frameTypes.windowUpdate) {
      control.takeWindowUpdate(frame, this.streams, this)
    } else if (frame.type === frameTypes.ping) {
      control.takePing(frame, this.output, this.lifetime)
      this.endIfDone()
    }
  }

  private takeBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return
    const fields = this.decoder.read(block.bytes, HEADER_LIST_BYTES_MAX)
    this.bear(Math.floor(this.decoder.work / 64 + block.bytes.length / 1024)) // 0 if usual
    const { stream: id, isLast } = block
    if (id > this.streams.last) {
      this.streams.last = id
      this.beginStream(id, isLast, fields)
      return
    }
    const isRequest = fields?.some(({ name }) => name.startsWith(':')) === true
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (isRequest) throw fault('a stream is begun again, or too late')
      if (!this.early.has(id, isLast)) this.takeLate(id)
      else if (!isLast) this.early.reset(id, errorCodes.protocol)
    } else if (stream.hasPeerEnded) stream.reset(errorCodes.streamClosed)
    else if (!isLast || isRequest || fields?.some(({ isValid }) => !isValid) === true) {
      stream.reset(errorCodes.protocol)
    } else this.giveData(stream, NOTHING, true)
  }

  private beginStream(id: number, isLast: boolean, fields: readonly HeaderField[] | undefined) {
    if (this.lifetime.hasLeft || !this.streams.takePlace()) {
      this.bear()
      this.early.reset(id, errorCodes.refusedStream)
      return
    }
    const stream = new CallStream(this, id, this.streams.windowBytes)
    stream.hasPeerEnded = isLast
    stream.bodyBytesLeft = fields && readContentLength(fields)
    this.streams.add(stream)
    this.guard(stream, () => {
      if (stream.takesBody(0, isLast)) this.deps.begin(stream, fields)
      else stream.done()
      if (isLast) stream.listener?.take(NOTHING, true)
    })
  }

  /** A defect of one call is the end of this call alone. */
  private guard(stream: CallStream, act: () => void): void {
    try {
      act()
    } catch (error) {
      this.deps.onDefect(error)
      stream.reset(errorCodes.internal)
      stream.done()
    }
  }

  private takeData(frame: Frame): void {
    const { stream: id, payload } = frame
    const isLast = (frame.flags & http2.frameFlags.endStream) !== 0
    this.received.take(payload.length)
    const bytes = unpadded(frame)
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.streams.isIdle(id)) throw fault('data is of a stream that was not begun')
      if (!this.early.has(id, isLast)) this.takeLate(id)
      return
    }
    stream.bytesTaken += payload.length
    if (stream.hasPeerEnded) stream.reset(errorCodes.streamClosed)
    else if (stream.bytesTaken > http2.WINDOW_BYTES) stream.reset(errorCodes.flowControl)
    else this.giveData(stream, bytes, isLast)
  }

  /** A frame of a closed stream. */
  private takeLate(id: number): void {
    this.bear()
    if (!this.early.wasReset(id)) this.early.reset(id, errorCodes.streamClosed)
  }

  private giveData(stream: CallStream, bytes: Buffer, isLast: boolean): void {
    if (!stream.takesBody(bytes.length, isLast)) return
    if (isLast) stream.hasPeerEnded = true
    else if (bytes.length < SMALL_DATA_BYTES) this.bear()
    this.guard(stream, () => stream.listener?.take(bytes, isLast))
    if (!isLast && !stream.isBlocked) stream.openWindow()
  }

  private takeReset({ stream: id }: Frame): void {
    if (this.streams.isIdle(id)) throw fault('it resets a stream that was not begun')
    const stream = this.streams.get(id)
    stream?.cut()
    this.early.has(id, true)
    // A call that keeps its place has its bound: who gives up many while we are slow means no harm.
    if (stream?.isHeld !== true) this.bear()
  }
}
