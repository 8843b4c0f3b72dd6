// How much more may be sent to a client of HTTP/2 (RFC 9113 §6.9). Touches nothing.
import { type Frame, numberAt } from './frame-reader.ts'
import { errorCodes, WINDOW_BYTES_MAX } from './frames.ts'
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
