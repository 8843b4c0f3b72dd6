// Parses a client's SETTINGS frames (RFC 9113 §6.5). Pure.
import {
  errorCodes,
  DEFAULT_MAX_FRAME_SIZE,
  frameFlags,
  frameTypes,
  settingNames,
  MAX_WINDOW_SIZE,
} from './frames.ts'
import { type Frame, readUint32 } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

/** Maximum number of settings in one frame. */
const SETTINGS_MAX = 32
const MAX_FRAME_SIZE_LIMIT = 2 ** 24 - 1

/** Whether a frame is SETTINGS without ACK, which must be a client's first frame. */
export function isSettings({ type, flags }: Frame): boolean {
  return type === frameTypes.settings && (flags & frameFlags.ack) === 0
}

/** The client's settings; `undefined` if the frame is an ack. Throws ProtocolError. */
export function readSettings(frame: Frame): (readonly [number, number])[] | undefined {
  const { flags, payload } = frame
  const isAck = (flags & frameFlags.ack) !== 0
  if (payload.length % 6 !== 0 || (isAck && payload.length > 0)) {
    throw new ProtocolError(errorCodes.frameSize, 'the payload of SETTINGS has an invalid size')
  }
  if (isAck) return undefined
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
  if (name === settingNames.initialWindowSize && value > MAX_WINDOW_SIZE) {
    throw new ProtocolError(errorCodes.flowControl, 'SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31 - 1')
  }
  if (name === settingNames.enablePush && value > 1) {
    throw new ProtocolError(errorCodes.protocol, 'SETTINGS_ENABLE_PUSH must be 0 or 1')
  }
  const isFrameSize = name === settingNames.maxFrameSize
  if (isFrameSize && (value < DEFAULT_MAX_FRAME_SIZE || value > MAX_FRAME_SIZE_LIMIT)) {
    throw new ProtocolError(errorCodes.protocol, 'invalid SETTINGS_MAX_FRAME_SIZE')
  }
}
