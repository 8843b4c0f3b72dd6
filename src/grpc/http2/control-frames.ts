// What frames of HTTP/2 do that are of no call: pings, settings and windows (RFC 9113 §6.5, §6.7,
// §6.9). Keeps nothing; what such frames may cost is the connection's to count.
import type { AnswerHeaders } from './answer-headers.ts'
import type { FrameOutput } from './frame-output.ts'
import type { Frame } from './frame-reader.ts'
import { errorCodes, frameFlags, sentFrames, settingNames, WINDOW_BYTES_MAX } from './frames.ts'
import type { Lifetime } from './lifetime.ts'
import type { OpenStreams } from './open-streams.ts'
import { ProtocolError } from './protocol-error.ts'
import { readSettings } from './read-settings.ts'
import { readIncrement, widen } from './windows.ts'

/** What they work on. */
interface Controlled {
  readonly output: FrameOutput
  readonly answerHeaders: AnswerHeaders
  sendWindow: number
}

/** Answers a ping, or takes the answer to one. */
export function takePing({ flags, payload }: Frame, output: FrameOutput, lifetime: Lifetime): void {
  if ((flags & frameFlags.acknowledge) !== 0) lifetime.answered(payload)
  else output.frame(sentFrames.pong, 0, payload)
}

/** Keeps the client's settings. Throws ProtocolError. */
export function takeSettings(frame: Frame, streams: OpenStreams, of: Controlled): void {
  const settings = readSettings(frame)
  if (settings === undefined) return
  let { windowBytes } = streams
  for (const [name, value] of settings) {
    if (name === settingNames.headerTableBytes) of.answerHeaders.limitTable(value)
    else if (name === settingNames.windowBytes) windowBytes = value
  }
  of.output.acknowledgeSettings()
  streams.setWindow(windowBytes)
}

/** Opens a window, and sends what waited for it. Throws ProtocolError. */
export function takeWindowUpdate(frame: Frame, streams: OpenStreams, of: Controlled): void {
  const { stream: id } = frame
  const more = readIncrement(frame)
  if (id === 0) {
    widen(of, more)
    pumpAll(streams, of)
    return
  }
  if (streams.isIdle(id)) {
    throw new ProtocolError(errorCodes.protocol, 'a window is of a stream that was not begun')
  }
  const stream = streams.get(id)
  if (stream === undefined) return
  if (more > WINDOW_BYTES_MAX - stream.sendWindow) {
    stream.reset(errorCodes.flowControl)
    return
  }
  widen(stream, more)
  stream.pump()
}

/** Sends what waits, as far as the client takes it. */
export function pumpAll(streams: OpenStreams, of: Controlled): void {
  streams.pump(() => of.sendWindow > 0 && !of.output.isFull)
}
