// A connection of HTTP/2 from the server's side, for calls of gRPC: keeps streams and windows, and
// ends with GOAWAY. Whatever a client sends, what is kept is bounded; a breach of the protocol
// ends the connection (RFC 9113). Knows no method and no message.
import type { Duplex } from 'node:stream'
import { AnswerHeaders } from './answer-headers.ts'
import { CallStream, type StreamHost } from './call-stream.ts'
import type { ConnectionDeps } from './connection-deps.ts'
import { readContentLength } from './content-length.ts'
import { EarlyAnswers } from './early-answers.ts'
import { FrameOutput } from './frame-output.ts'
import { checkFrame } from './check-frame.ts'
import { type Frame, FrameReader } from './frame-reader.ts'
import * as http2 from './frames.ts'
import { type HeaderBlock, HeaderBlocks, unpadded } from './header-blocks.ts'
import { type HeaderField, HpackDecoder } from './hpack-decoder.ts'
import { Lifetime } from './lifetime.ts'
import { OpenStreams } from './open-streams.ts'
import { Patience } from './patience.ts'
import { ProtocolError } from './protocol-error.ts'
import { HEADER_LIST_BYTES_MAX, ourSettings } from './our-settings.ts'
import { isSettings, readSettings } from './read-settings.ts'
import { readIncrement, ReceiveWindow, widen } from './windows.ts'

const { errorCodes, frameTypes, settingNames } = http2
const fault = (why: string) => new ProtocolError(errorCodes.protocol, why)
const NOTHING = Buffer.alloc(0)

/** Speaks HTTP/2 on a socket until either side ends it. */
export class Http2Connection implements StreamHost {
  readonly output: FrameOutput
  readonly answerHeaders = new AnswerHeaders()
  sendWindow = http2.WINDOW_BYTES
  private readonly deps: ConnectionDeps<Http2Connection>
  private readonly socket: Duplex
  private readonly reader = new FrameReader()
  private readonly blocks = new HeaderBlocks()
  private readonly decoder = new HpackDecoder()
  private readonly streams = new OpenStreams()
  private readonly early: EarlyAnswers
  private readonly patience: Patience
  private readonly lifetime: Lifetime
  private readonly received: ReceiveWindow
  private readonly take = (frame: Frame) => {
    if (!this.lifetime.isOver) this.takeFrame(frame)
  }
  private hasSettings = false
  private nowMs: number

  constructor(socket: Duplex, deps: ConnectionDeps<Http2Connection>) {
    this.socket = socket
    this.deps = deps
    this.nowMs = deps.nowMs()
    this.patience = new Patience(this.nowMs)
    this.output = new FrameOutput(socket)
    this.early = new EarlyAnswers(this.output)
    this.output.settings(ourSettings)
    this.received = new ReceiveWindow(this.output)
    this.lifetime = new Lifetime(socket, this.output, this.nowMs)
    socket.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    socket.on('error', () => undefined) // its end tells
    socket.on('close', () => {
      this.lifetime.isOver = true
      this.streams.cut()
      deps.onGone(this)
    })
    socket.on('drain', () => {
      this.pumpAll()
    })
  }

  /** Lets calls under way be answered and takes no new ones, once the client knows; then ends. */
  leave(): void {
    this.lifetime.leave(this.deps.nowMs())
  }

  /** Ends at once. */
  cut(): void {
    this.socket.destroy()
  }

  /** Looks after what is due; to be called several times a second. */
  look(nowMs: number): void {
    this.nowMs = nowMs
    this.streams.endLate(nowMs, (stream) => {
      stream.refuse({ code: 'DEADLINE_EXCEEDED', details: 'there was no time left for the call' })
    })
    this.early.look(nowMs)
    this.lifetime.look(nowMs, this.reader.hasPreface)
    this.endIfDone()
  }

  answered(stream: CallStream): void {
    this.patience.makeUp()
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
    if (this.lifetime.isOver) return
    this.nowMs = this.deps.nowMs()
    this.lifetime.heard(this.nowMs)
    try {
      this.reader.read(chunk, this.take)
    } catch (error) {
      if (!(error instanceof ProtocolError)) this.deps.onDefect(error)
      const code = error instanceof ProtocolError ? error.code : errorCodes.internal
      this.output.goAway(this.streams.last, code)
      this.lifetime.end(this.nowMs)
      this.streams.cut()
    }
    this.lifetime.waitIfFull()
  }

  private bear(): void {
    if (this.patience.bear(this.nowMs)) return
    throw new ProtocolError(errorCodes.enhanceYourCalm, 'it asks for too much that brings nothing')
  }

  private takeFrame(frame: Frame): void {
    const { type } = frame
    if (!this.hasSettings && !isSettings(frame)) throw fault('settings must come first')
    this.hasSettings = true
    checkFrame(frame)
    if (this.blocks.isBegun && type !== frameTypes.continuation) throw fault('a block breaks off')
    if (type === frameTypes.data) this.takeData(frame)
    else if (type === frameTypes.headers) this.takeBlock(this.blocks.begin(frame))
    else if (type === frameTypes.windowUpdate) this.takeWindowUpdate(frame)
    else if (type === frameTypes.continuation) this.takeBlock(this.blocks.continue(frame))
    else if (type === frameTypes.reset) this.takeReset(frame)
    else this.takeControl(frame)
  }

  private takeControl(frame: Frame): void {
    this.bear()
    if (frame.type === frameTypes.settings) this.takeSettings(frame)
    else if (frame.type === frameTypes.ping) this.takePing(frame)
  }

  private takeBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return
    const fields = this.decoder.read(block.bytes, HEADER_LIST_BYTES_MAX)
    const { stream: id, isLast } = block
    if (id > this.streams.last) {
      this.streams.last = id
      this.beginStream(id, isLast, fields)
      return
    }
    // From here on they are trailers, and mean nothing.
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
    if (this.lifetime.hasLeft || !this.streams.hasPlace) {
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
      else {
        stream.reset(errorCodes.protocol)
        stream.done()
      }
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
    if (!stream.takesBody(bytes.length, isLast)) {
      stream.reset(errorCodes.protocol)
      return
    }
    if (isLast) stream.hasPeerEnded = true
    else if (bytes.length === 0) this.bear()
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

  private takePing({ flags, payload }: Frame): void {
    if ((flags & http2.frameFlags.acknowledge) === 0) {
      this.output.frame(http2.sentFrames.pong, 0, payload)
    } else this.lifetime.answered(payload)
    this.endIfDone()
  }

  private takeSettings(frame: Frame): void {
    const settings = readSettings(frame)
    if (settings === undefined) return
    let { windowBytes } = this.streams
    for (const [name, value] of settings) {
      if (name === settingNames.headerTableBytes) this.answerHeaders.limitTable(value)
      else if (name === settingNames.windowBytes) windowBytes = value
    }
    this.output.acknowledgeSettings()
    this.streams.setWindow(windowBytes)
  }

  private takeWindowUpdate(frame: Frame): void {
    const { stream: id } = frame
    const more = readIncrement(frame)
    if (id === 0) {
      widen(this, more)
      this.pumpAll()
      return
    }
    if (this.streams.isIdle(id)) throw fault('a window is of a stream that was not begun')
    const stream = this.streams.get(id)
    if (stream === undefined) this.bear()
    else if (more > http2.WINDOW_BYTES_MAX - stream.sendWindow) stream.reset(errorCodes.flowControl)
    else {
      widen(stream, more)
      stream.pump()
    }
  }

  private pumpAll(): void {
    this.streams.pump(() => this.sendWindow > 0 && !this.output.isFull)
  }
}
