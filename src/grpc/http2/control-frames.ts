// Handles PING, SETTINGS and WINDOW_UPDATE frames (RFC 9113 §6.5, §6.7, §6.9). Stateless; the
// connection limits how many such frames it accepts.
import type { ResponseHeaders } from './response-headers.ts'
import type { FrameOutput } from './frame-output.ts'
import type { Frame } from './frame-reader.ts'
import { errorCodes, frameFlags, sentFrames, settingNames, MAX_WINDOW_SIZE } from './frames.ts'
import type { Lifetime } from './lifetime.ts'
import type { OpenStreams } from './open-streams.ts'
import { ProtocolError } from './protocol-error.ts'
import { readSettings } from './read-settings.ts'
import { readIncrement, increaseWindow } from './windows.ts'

/** The state of a connection that these frames change, besides its streams. */
interface ConnectionState {
  readonly output: FrameOutput
  readonly responseHeaders: ResponseHeaders
  sendWindow: number
}

/** Acknowledges a PING frame, or handles an ack. */
export function handlePing(frame: Frame, output: FrameOutput, lifetime: Lifetime): void {
  const { flags, payload } = frame
  if ((flags & frameFlags.ack) !== 0) lifetime.pingAcknowledged(payload)
  else output.frame(sentFrames.pingAck, 0, payload)
}

/** Applies the client's SETTINGS. Throws ProtocolError. */
export function handleSettings(frame: Frame, streams: OpenStreams, target: ConnectionState): void {
  const settings = readSettings(frame)
  if (settings === undefined) return
  let { initialWindowSize } = streams
  for (const [name, value] of settings) {
    if (name === settingNames.headerTableSize) target.responseHeaders.setHeaderTableSize(value)
    else if (name === settingNames.initialWindowSize) initialWindowSize = value
  }
  target.output.acknowledgeSettings()
  streams.setInitialWindowSize(initialWindowSize)
}

/** Increases a window and sends the output that waits for it. Throws ProtocolError. */
export function handleWindowUpdate(
  frame: Frame,
  streams: OpenStreams,
  target: ConnectionState,
): void {
  const { streamId: id } = frame
  const increment = readIncrement(frame)
  if (id === 0) {
    increaseWindow(target, increment)
    pumpAll(streams, target)
    return
  }
  if (streams.isIdle(id)) {
    throw new ProtocolError(errorCodes.protocol, 'WINDOW_UPDATE on an idle stream')
  }
  const stream = streams.get(id)
  if (stream === undefined) return
  if (increment > MAX_WINDOW_SIZE - stream.sendWindow) {
    stream.reset(errorCodes.flowControl)
    return
  }
  increaseWindow(stream, increment)
  stream.pump()
}

/** Sends pending output as far as the window and the socket allow. */
export function pumpAll(streams: OpenStreams, target: ConnectionState): void {
  streams.pump(() => target.sendWindow > 0 && !target.output.isFull)
}
