// Collects the frames of one connection and writes all frames of one turn of the event loop to the
// socket together. Independent of the meaning of the frames.
import type { Duplex } from 'node:stream'
import { copyOf, EMPTY } from './copy-of.ts'
import type { Budget } from './process-bounds.ts'
import {
  type ErrorCode,
  FRAME_HEADER_BYTES,
  type FrameKind,
  MAX_STREAM_ID,
  sentFrames,
} from './frames.ts'

const INITIAL_BYTES = 1024
/** The collected frames are flushed before they exceed this size. */
const BYTES_MAX = 64 * 1024
/** A larger buffer is passed to the socket without a copy, and is not reused. */
const BYTES_KEPT_MAX = 4 * 1024
/** Maximum length of the debug data of GOAWAY. */
const REASON_BYTES_MAX = 128

/** Writes frames. */
export class FrameOutput {
  /** Whether the socket buffers output, because the client reads too slowly. */
  isFull = false
  private readonly socket: Duplex
  private bytes = EMPTY
  private at = 0
  private readonly budget: Budget
  private isScheduled = false
  private lastStreamId = MAX_STREAM_ID
  /** Bytes acquired from the budget. */
  private heldBytes = 0
  /** Whether a write waits behind an earlier one; frames are collected until it has completed. */
  private isWriteQueued = false
  private readonly flushLater = () => {
    this.isScheduled = false
    if (!this.isWriteQueued) this.flush()
  }
  private readonly writeDone = () => {
    this.isWriteQueued = false
    if (!this.isScheduled) this.flush()
  }

  constructor(socket: Duplex, budget: Budget) {
    this.socket = socket
    this.budget = budget
  }

  /** Called when the socket has drained or is closed: releases the buffered bytes. */
  drained(): void {
    this.isFull = false
    this.budget.release(this.heldBytes)
    this.heldBytes = 0
  }

  /** Writes a frame with this payload. */
  frame(kind: FrameKind, streamId: number, payload: Buffer): void {
    const { length } = payload
    this.startFrame(kind, streamId, length)
    if (length < 32) {
      // For a few bytes this is faster than a call into the engine.
      for (let i = 0; i < length; i += 1) this.bytes[this.at + i] = payload[i] ?? 0
    } else payload.copy(this.bytes, this.at)
    this.at += length
  }

  /** Writes a DATA frame with one uncompressed gRPC message. */
  message(streamId: number, message: Buffer): void {
    const { length } = message
    this.startFrame(sentFrames.data, streamId, 5 + length)
    this.bytes[this.at] = 0
    this.writeUint32(this.at + 1, length)
    message.copy(this.bytes, this.at + 5)
    this.at += 5 + length
  }

  /** Writes RST_STREAM. */
  reset(streamId: number, code: ErrorCode): void {
    this.writeUint32s(sentFrames.rstStream, streamId, [code])
  }

  /** Writes WINDOW_UPDATE. */
  windowUpdate(streamId: number, bytes: number): void {
    this.writeUint32s(sentFrames.windowUpdate, streamId, [bytes])
  }

  /**
   * Writes GOAWAY with the lowest Last-Stream-ID so far, because later frames must not increase it
   * (RFC 9113 §6.8). The reason, up to REASON_BYTES_MAX of ASCII, is its debug data.
   */
  goaway(lastStreamId: number, code: ErrorCode, reason = ''): void {
    this.lastStreamId = Math.min(this.lastStreamId, lastStreamId)
    const payload = Buffer.alloc(8 + Math.min(reason.length, REASON_BYTES_MAX))
    payload.writeUInt32BE(this.lastStreamId)
    payload.writeUInt32BE(code, 4)
    payload.write(reason, 8, 'latin1')
    this.frame(sentFrames.goaway, 0, payload)
  }

  /** Writes SETTINGS. */
  settings(settings: readonly (readonly [name: number, value: number])[]): void {
    this.startFrame(sentFrames.settings, 0, settings.length * 6)
    for (const [name, value] of settings) {
      this.bytes[this.at] = 0
      this.bytes[this.at + 1] = name
      this.writeUint32(this.at + 2, value)
      this.at += 6
    }
  }

  /** Writes the SETTINGS ack. */
  acknowledgeSettings(): void {
    this.startFrame(sentFrames.settingsAck, 0, 0)
  }

  /** Writes all collected frames to the socket. */
  flush(): void {
    const { at, socket } = this
    if (at === 0) return
    this.at = 0
    if (!socket.writable) return
    const written = this.bytes.subarray(0, at)
    const isKept = this.bytes.length <= BYTES_KEPT_MAX
    if (!isKept) this.bytes = EMPTY
    this.isWriteQueued = socket.writableLength > 0
    const callback = this.isWriteQueued ? this.writeDone : undefined
    if (socket.write(isKept ? copyOf(written) : written, callback)) return
    this.isFull = true
    this.updateBudget()
  }

  /** Counts the output that the client has not read; must be called several times a second. */
  updateBudget(): void {
    const { writableLength, destroyed } = this.socket
    if (destroyed) return
    const held = writableLength === 0 ? 0 : writableLength + this.bytes.length
    if (held <= this.heldBytes) this.budget.release(this.heldBytes - held)
    else if (!this.budget.acquire(held - this.heldBytes)) {
      this.socket.destroy() // without GOAWAY, because the client does not read
      return
    }
    this.heldBytes = held
  }

  private writeUint32s(kind: FrameKind, streamId: number, values: readonly number[]): void {
    this.startFrame(kind, streamId, values.length * 4)
    for (const value of values) {
      this.writeUint32(this.at, value)
      this.at += 4
    }
  }

  /** Writes a frame header and reserves the bytes of its payload. */
  private startFrame(kind: FrameKind, streamId: number, length: number): void {
    this.reserve(FRAME_HEADER_BYTES + length)
    const { bytes, at } = this
    bytes[at] = length >> 16
    bytes[at + 1] = (length >> 8) & 255
    bytes[at + 2] = length & 255
    bytes[at + 3] = kind.type
    bytes[at + 4] = kind.flags
    this.writeUint32(at + 5, streamId)
    this.at = at + FRAME_HEADER_BYTES
  }

  private writeUint32(at: number, value: number): void {
    const { bytes } = this
    bytes[at] = value >>> 24
    bytes[at + 1] = (value >>> 16) & 255
    bytes[at + 2] = (value >>> 8) & 255
    bytes[at + 3] = value & 255
  }

  private reserve(count: number): void {
    if (!this.isScheduled) {
      this.isScheduled = true
      setImmediate(this.flushLater)
    }
    if (this.at + count > BYTES_MAX) this.flush()
    const length = this.at + count
    if (length <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length, INITIAL_BYTES))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }
}
