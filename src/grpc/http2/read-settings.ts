// Reads the settings that a client of HTTP/2 tells (RFC 9113 §6.5). Touches nothing.
import {
  errorCodes,
  FRAME_BYTES_MAX,
  frameFlags,
  frameTypes,
  settingNames,
  WINDOW_BYTES_MAX,
} from './frames.ts'
import { type Frame, numberAt } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

/** Settings in one frame. */
const SETTINGS_MAX = 32
const FRAME_BYTES_WIDEST = 2 ** 24 - 1

/** Whether a frame tells settings, as a client's first frame must. */
export function isSettings({ type, flags }: Frame): boolean {
  return type === frameTypes.settings && (flags & frameFlags.acknowledge) === 0
}

/** What the client tells; undefined if it only says that it keeps ours. Throws ProtocolError. */
export function readSettings(frame: Frame): (readonly [number, number])[] | undefined {
  const { flags, payload } = frame
  const isAcknowledged = (flags & frameFlags.acknowledge) !== 0
  if (payload.length % 6 !== 0 || (isAcknowledged && payload.length > 0)) {
    throw new ProtocolError(errorCodes.frameSize, 'each setting has 6 bytes')
  }
  if (isAcknowledged) return undefined
  if (payload.length > SETTINGS_MAX * 6) {
    throw new ProtocolError(errorCodes.enhanceYourCalm, 'there are too many settings')
  }
  const settings: [number, number][] = []
  for (let at = 0; at < payload.length; at += 6) {
    const [name, value] = [payload.readUInt16BE(at), numberAt(payload, at + 2)]
    check(name, value)
    settings.push([name, value])
  }
  return settings
}

function check(name: number, value: number): void {
  if (name === settingNames.windowBytes && value > WINDOW_BYTES_MAX) {
    throw new ProtocolError(errorCodes.flowControl, 'a window is too wide')
  }
  if (name === settingNames.push && value > 1) {
    throw new ProtocolError(errorCodes.protocol, 'pushes are allowed by 1 or forbidden by 0')
  }
  const isFrameSize = name === settingNames.frameBytesMax
  if (isFrameSize && (value < FRAME_BYTES_MAX || value > FRAME_BYTES_WIDEST)) {
    throw new ProtocolError(errorCodes.protocol, 'there is no such size of frames')
  }
}
