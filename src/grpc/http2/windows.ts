// The flow-control windows of client and server (RFC 9113 §6.9).
import { type Frame, readUint32 } from './frame-reader.ts'
import type { FrameOutput } from './frame-output.ts'
import { errorCodes, INITIAL_WINDOW_SIZE, MAX_WINDOW_SIZE } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'

/** The increment of a WINDOW_UPDATE frame. Throws ProtocolError. */
export function readIncrement({ payload }: Frame): number {
  const increment = readUint32(payload, 0) & MAX_WINDOW_SIZE
  if (increment === 0)
    throw new ProtocolError(errorCodes.protocol, 'WINDOW_UPDATE with increment 0')
  return increment
}

/** Adds `increment`, which may be negative, to a send window. Throws ProtocolError. */
export function increaseWindow(target: { sendWindow: number }, increment: number): void {
  target.sendWindow += increment
  if (target.sendWindow > MAX_WINDOW_SIZE) {
    throw new ProtocolError(errorCodes.flowControl, 'a flow-control window exceeds 2^31 - 1')
  }
}

/** Bytes of the connection's receive window. */
const RECEIVE_WINDOW_SIZE = 1024 * 1024

/** The receive window of a connection. */
export class ReceiveWindow {
  private readonly output: FrameOutput
  private bytesReceived = 0

  constructor(output: FrameOutput) {
    this.output = output
    output.windowUpdate(0, RECEIVE_WINDOW_SIZE - INITIAL_WINDOW_SIZE)
  }

  /** Counts received bytes; sends WINDOW_UPDATE when half of the window is used. */
  receive(bytes: number): void {
    this.bytesReceived += bytes
    if (this.bytesReceived <= RECEIVE_WINDOW_SIZE / 2) return
    this.output.windowUpdate(0, this.bytesReceived)
    this.bytesReceived = 0
  }
}
