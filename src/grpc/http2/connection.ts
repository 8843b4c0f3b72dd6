// The server side of an HTTP/2 connection for gRPC calls (RFC 9113): manages streams and windows,
// and closes with GOAWAY. Its state is bounded. Independent of methods and messages.
import type { Duplex } from 'node:stream'
import { ResponseHeaders } from './response-headers.ts'
import { CallStream, type StreamHost } from './call-stream.ts'
import type { ConnectionDeps } from './connection-deps.ts'
import { readContentLength } from './content-length.ts'
import * as control from './control-frames.ts'
import { ClosingStreams } from './closing-streams.ts'
import { FrameOutput } from './frame-output.ts'
import { checkFrame } from './check-frame.ts'
import { EMPTY } from './copy-of.ts'
import { type Frame, FrameReader } from './frame-reader.ts'
import * as http2 from './frames.ts'
import { type FieldBlock, FieldBlockAssembler, unpadded } from './field-block-assembler.ts'
import { type HeaderField, HpackDecoder } from './hpack-decoder.ts'
import { InputQueue } from './input-queue.ts'
import { Lifetime } from './lifetime.ts'
import { OpenStreams } from './open-streams.ts'
import { AbuseBudget, EXHAUSTED } from './abuse-budget.ts'
import type { Budgets } from './process-bounds.ts'
import { internalError, ProtocolError } from './protocol-error.ts'
import { MAX_HEADER_LIST_SIZE, localSettings } from './local-settings.ts'
import { isSettings } from './read-settings.ts'
import { ReceiveWindow } from './windows.ts'

const { errorCodes, frameTypes } = http2
const fault = (reason: string) => new ProtocolError(errorCodes.protocol, reason)

/** A smaller DATA frame without END_STREAM counts as abuse. */
const SMALL_DATA_BYTES = 64

/** Serves HTTP/2 on a socket until either side closes it. */
export class Http2Connection implements StreamHost {
  readonly output: FrameOutput
  readonly budgets: Budgets
  readonly responseHeaders = new ResponseHeaders()
  sendWindow = http2.INITIAL_WINDOW_SIZE
  private readonly deps: ConnectionDeps
  private readonly socket: Duplex
  private readonly reader = new FrameReader()
  private readonly blocks: FieldBlockAssembler
  private readonly decoder: HpackDecoder
  private readonly streams: OpenStreams
  private readonly closingStreams: ClosingStreams
  private readonly abuseBudget: AbuseBudget
  private readonly lifetime: Lifetime
  private readonly inputQueue: InputQueue
  private readonly receiveWindow: ReceiveWindow
  private hasSettings = false
  private nowMs: number

  constructor(socket: Duplex, deps: ConnectionDeps) {
    this.socket = socket
    this.deps = deps
    this.nowMs = deps.nowMs()
    this.abuseBudget = new AbuseBudget(this.nowMs)
    const { budgets } = deps
    this.budgets = budgets
    this.blocks = new FieldBlockAssembler(budgets.headers)
    this.decoder = new HpackDecoder(budgets.headers)
    this.streams = new OpenStreams(budgets.streams)
    this.output = new FrameOutput(socket, budgets.output)
    this.closingStreams = new ClosingStreams(this.output, budgets.streams)
    this.output.settings(localSettings)
    this.receiveWindow = new ReceiveWindow(this.output)
    this.lifetime = new Lifetime(socket, this.output, this.nowMs)
    const own = { budget: budgets.input, lifetime: this.lifetime, reader: this.reader, socket }
    this.inputQueue = new InputQueue({ ...deps, ...own, connection: this })
    socket.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    socket.on('error', () => undefined) // 'close' follows
    socket.on('close', () => {
      this.lifetime.isClosed = true
      this.clear()
      this.output.drained()
      deps.onClose()
    })
    socket.on('drain', () => {
      control.pumpAll(this.streams, this)
    })
  }

  /** Sends GOAWAY, completes the calls in flight, then closes the connection. */
  startGracefulShutdown(): void {
    this.lifetime.startGracefulShutdown(this.deps.nowMs())
  }

  /** Destroys the socket immediately. */
  destroy(): void {
    this.socket.destroy()
    this.output.drained() // releases its budget now, not when the socket is closed
  }

  /** Closes the connection with GOAWAY: it exceeds a limit, or others need its resources. */
  shed(reason: string): void {
    this.closeWith(new ProtocolError(errorCodes.enhanceYourCalm, reason))
    if (this.output.isFull) this.destroy()
  }

  /** Enforces deadlines; must be called several times a second. */
  checkDeadlines(nowMs: number): void {
    this.nowMs = nowMs
    this.streams.closeTimedOut(nowMs, (stream) => {
      stream.reject({ code: 'DEADLINE_EXCEEDED', details: 'the deadline of the call was exceeded' })
    })
    this.closingStreams.resetExpired(nowMs)
    this.lifetime.checkDeadlines(nowMs, this.reader.hasPreface)
    if (this.blocks.isTimedOut(nowMs)) this.shed('a field block was incomplete for too long')
    if (this.inputQueue.checkDeadlines(nowMs)) this.shed('a frame was incomplete for too long')
    this.closeIfDone()
  }

  spend(amount: number): void {
    if (!this.abuseBudget.spend(this.nowMs, amount)) this.shed(EXHAUSTED)
  }

  runLater(job: () => void): void {
    this.inputQueue.runLater(job)
  }

  responded(stream: CallStream, isOk: boolean): void {
    if (isOk) this.abuseBudget.refund()
    if (!stream.isRemoteClosed) this.closingStreams.add(stream.id, this.nowMs)
  }

  remove(stream: CallStream): void {
    this.streams.remove(stream)
    this.closeIfDone()
  }

  reset(stream: CallStream, code: http2.ErrorCode): void {
    this.closingStreams.reset(stream.id, code)
    if (code !== errorCodes.internal) this.spend(1) // not for a defect of the server
  }

  freeSlot(): void {
    this.streams.freeSlot()
  }

  block(stream: CallStream): void {
    this.streams.block(stream)
  }

  private closeIfDone(): void {
    this.lifetime.sendFinalGoaway(this.streams.lastStreamId)
    if (this.streams.count === 0 && this.lifetime.isFinalGoawaySent) this.lifetime.close(this.nowMs)
  }

  private read(chunk: Buffer): void {
    if (this.lifetime.isClosed) {
      this.lifetime.discard(chunk.length)
      return
    }
    this.nowMs = this.deps.nowMs()
    this.lifetime.received(this.nowMs)
    this.inputQueue.add(chunk)
  }

  fail(error: unknown): void {
    if (!(error instanceof ProtocolError)) this.deps.onDefect(error)
    this.closeWith(error instanceof ProtocolError ? error : internalError)
  }

  private closeWith({ code, message }: ProtocolError): void {
    if (this.lifetime.isClosed) return
    this.output.goaway(this.streams.lastStreamId, code, message)
    this.lifetime.close(this.nowMs)
    this.clear()
  }

  /** Drops all state of received frames. */
  private clear(): void {
    this.streams.destroyAll()
    this.inputQueue.clear()
    this.blocks.clear()
    this.decoder.clear()
    this.closingStreams.clear()
  }

  private spendOrFail(amount = 1): void {
    if (this.abuseBudget.spend(this.nowMs, amount)) return
    throw new ProtocolError(errorCodes.enhanceYourCalm, EXHAUSTED)
  }

  handleFrame(frame: Frame): void {
    if (this.lifetime.isClosed) return
    const { type } = frame
    if (!this.hasSettings && !isSettings(frame)) throw fault('the first frame must be SETTINGS')
    this.hasSettings = true
    checkFrame(frame)
    this.blocks.checkOrder(type)
    if (type === frameTypes.data) this.handleData(frame)
    else if (type === frameTypes.headers) this.handleBlock(this.blocks.start(frame, this.nowMs))
    else if (type === frameTypes.continuation) this.handleBlock(this.blocks.continue(frame))
    else if (type === frameTypes.rstStream) this.handleReset(frame)
    else this.handleControlFrame(frame)
  }

  private handleControlFrame(frame: Frame): void {
    this.spendOrFail()
    if (frame.type === frameTypes.settings) control.handleSettings(frame, this.streams, this)
    else if (frame.type === frameTypes.windowUpdate) {
      control.handleWindowUpdate(frame, this.streams, this)
    } else if (frame.type === frameTypes.ping) {
      control.handlePing(frame, this.output, this.lifetime)
      this.closeIfDone()
    }
  }

  private handleBlock(block: FieldBlock | undefined): void {
    if (block === undefined) return
    const fields = this.decoder.decode(block.bytes, MAX_HEADER_LIST_SIZE)
    this.spendOrFail(Math.floor(this.decoder.cost / 64 + block.bytes.length / 1024)) // usually 0
    const { streamId: id, endStream } = block
    if (id > this.streams.lastStreamId) {
      this.streams.lastStreamId = id
      this.openStream(id, endStream, fields)
      return
    }
    const isRequest = fields?.some(({ name }) => name.startsWith(':')) === true
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (isRequest) throw fault('the stream identifier was already used')
      if (!this.closingStreams.acceptFrame(id, endStream)) this.handleClosedStream(id)
      else if (!endStream) this.closingStreams.reset(id, errorCodes.protocol)
    } else if (stream.isRemoteClosed) stream.reset(errorCodes.streamClosed)
    else if (!endStream || isRequest || fields?.some(({ isValid }) => !isValid) === true) {
      stream.reset(errorCodes.protocol)
    } else this.deliverData(stream, EMPTY, true)
  }

  private openStream(id: number, endStream: boolean, fields: readonly HeaderField[] | undefined) {
    if (this.lifetime.isFinalGoawaySent || !this.streams.takeSlot()) {
      this.spendOrFail()
      this.closingStreams.reset(id, errorCodes.refusedStream)
      return
    }
    const stream = new CallStream(this, id, this.streams.initialWindowSize)
    stream.isRemoteClosed = endStream
    stream.bodyBytesLeft = fields && readContentLength(fields)
    this.streams.add(stream)
    this.guard(stream, () => {
      if (stream.countBody(0, endStream)) this.deps.startCall(stream, fields)
      else stream.handlerDone()
      if (endStream) stream.listener?.receive(EMPTY, true)
    })
  }

  /** A defect in a call aborts this call only. */
  private guard(stream: CallStream, act: () => void): void {
    try {
      act()
    } catch (error) {
      this.deps.onDefect(error)
      stream.reset(errorCodes.internal)
      stream.handlerDone()
    }
  }

  private handleData(frame: Frame): void {
    const { streamId: id, payload } = frame
    const endStream = (frame.flags & http2.frameFlags.endStream) !== 0
    this.receiveWindow.receive(payload.length)
    const bytes = unpadded(frame)
    if (!endStream && bytes.length < SMALL_DATA_BYTES) this.spendOrFail()
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.streams.isIdle(id)) throw fault('DATA on an idle stream')
      if (!this.closingStreams.acceptFrame(id, endStream)) this.handleClosedStream(id)
      return
    }
    stream.bytesReceived += payload.length
    if (stream.isRemoteClosed) stream.reset(errorCodes.streamClosed)
    else if (stream.bytesReceived > http2.INITIAL_WINDOW_SIZE) stream.reset(errorCodes.flowControl)
    else this.deliverData(stream, bytes, endStream)
  }

  private handleClosedStream(id: number): void {
    this.spendOrFail()
    if (!this.closingStreams.wasReset(id)) this.closingStreams.reset(id, errorCodes.streamClosed)
  }

  private deliverData(stream: CallStream, bytes: Buffer, endStream: boolean): void {
    if (!stream.countBody(bytes.length, endStream)) return
    if (endStream) stream.isRemoteClosed = true
    this.guard(stream, () => stream.listener?.receive(bytes, endStream))
    if (!endStream && !stream.hasPendingOutput) stream.sendWindowUpdate()
  }

  private handleReset({ streamId: id }: Frame): void {
    if (this.streams.isIdle(id)) throw fault('RST_STREAM on an idle stream')
    const stream = this.streams.get(id)
    stream?.destroy()
    this.closingStreams.remove(id)
    // Cancelling a call in progress is not abuse: the call keeps its slot, and slots are bounded.
    if (stream?.isInProgress !== true) this.spendOrFail()
  }
}
