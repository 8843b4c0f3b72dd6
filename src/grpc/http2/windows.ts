// How much more either side of HTTP/2 may send (RFC 9113 §6.9).
import { type Frame, numberAt } from './frame-reader.ts'
import type { FrameOutput } from './frame-output.ts'
import { errorCodes, WINDOW_BYTES, WINDOW_BYTES_MAX } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'

/** By how much a frame opens a window. Throws ProtocolError. */
export function readIncrement({ payload }: Frame): number {
  const more = numberAt(payload, 0) & WINDOW_BYTES_MAX
  if (more === 0) throw new ProtocolError(errorCodes.protocol, 'a window is opened by nothing')
  return more
}

/** Opens a window, or closes it by less than nothing. Throws ProtocolError. */
export function widen(of: { sendWindow: number }, more: number): void {
  of.sendWindow += more
  if (of.sendWindow > WINDOW_BYTES_MAX) {
    throw new ProtocolError(errorCodes.flowControl, 'a window is too wide')
  }
}

/** Bytes of data that a client may send on all its streams before it is told to go on. */
const RECEIVE_WINDOW_BYTES = 1024 * 1024

/** What a client may send on all its streams together. */
export class ReceiveWindow {
  private readonly output: FrameOutput
  private bytesTaken = 0

  constructor(output: FrameOutput) {
    this.output = output
    output.windowUpdate(0, RECEIVE_WINDOW_BYTES - WINDOW_BYTES)
  }

  /** Takes bytes of data; opens the window when half of it is used. */
  take(bytes: number): void {
    this.bytesTaken += bytes
    if (this.bytesTaken <= RECEIVE_WINDOW_BYTES / 2) return
    this.output.windowUpdate(0, this.bytesTaken)
    this.bytesTaken = 0
  }
}
