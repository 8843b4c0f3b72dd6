// Parses a client's SETTINGS frames (RFC 9113 §6.5). Pure.
import {
  errorCodes,
  FRAME_BYTES_MAX,
  frameFlags,
  frameTypes,
  settingNames,
  WINDOW_BYTES_MAX,
} from './frames.ts'
import { type Frame, readUint32 } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

/** Maximum number of settings in one frame. */
const SETTINGS_MAX = 32
const FRAME_BYTES_WIDEST = 2 ** 24 - 1

/** Whether a frame is SETTINGS without ACK, as a client's first frame must be. */
export function isSettings({ type, flags }: Frame): boolean {
  return type === frameTypes.settings && (flags & frameFlags.ack) === 0
}

/** The client's settings; undefined if the frame is an ack of ours. Throws ProtocolError. */
export function readSettings(frame: Frame): (readonly [number, number])[] | undefined {
  const { flags, payload } = frame
  const isAcknowledged = (flags & frameFlags.ack) !== 0
  if (payload.length % 6 !== 0 || (isAcknowledged && payload.length > 0)) {
    throw new ProtocolError(errorCodes.frameSize, 'each setting has 6 bytes')
  }
  if (isAcknowledged) return undefined
  if (payload.length > SETTINGS_MAX * 6) {
    throw new ProtocolError(errorCodes.enhanceYourCalm, 'too many settings')
  }
  const settings: [number, number][] = []
  for (let at = 0; at < payload.length; at += 6) {
    const [name, value] = [payload.readUInt16BE(at), readUint32(payload, at + 2)]
    check(name, value)
    settings.push([name, value])
  }
  return settings
}

function check(name: number, value: number): void {
  if (name === settingNames.initialWindowSize && value > WINDOW_BYTES_MAX) {
    throw new ProtocolError(errorCodes.flowControl, 'a window is too wide')
  }
  if (name === settingNames.enablePush && value > 1) {
    throw new ProtocolError(errorCodes.protocol, 'pushes are allowed by 1 or forbidden by 0')
  }
  const isFrameSize = name === settingNames.maxFrameSize
  if (isFrameSize && (value < FRAME_BYTES_MAX || value > FRAME_BYTES_WIDEST)) {
    throw new ProtocolError(errorCodes.protocol, 'invalid SETTINGS_MAX_FRAME_SIZE')
  }
}
