// What stands in frames of HTTP/2 (RFC 9113) by number: types, flags, settings, errors. Touches
// nothing.

/** Types of frames. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** Flags of frames; acknowledgements share the bit of END_STREAM. */
export const frameFlags = {
  endStream: 1,
  acknowledge: 1,
  endHeaders: 4,
  padded: 8,
  priority: 32,
} as const

/** Settings that either side tells the other. */
export const settingNames = {
  headerTableBytes: 1,
  push: 2,
  streamsMax: 3,
  windowBytes: 4,
  frameBytesMax: 5,
  headerListBytesMax: 6,
} as const

/** Why a stream or a connection ends. */
export const errorCodes = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const

/** One of the errors. */
export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes]

/** Bytes before the payload: its length in 3, type, flags, and the stream in 4. */
export const FRAME_HEAD_BYTES = 9
/** Bytes of the longest payload that either side sends unless told otherwise. */
export const FRAME_BYTES_MAX = 16_384
/** Bytes that may be sent at first, on a stream and on a connection. */
export const WINDOW_BYTES = 65_535
/** Bytes of the widest window there may be, and the highest number of a stream. */
export const WINDOW_BYTES_MAX = 2 ** 31 - 1

/** A frame's type and flags. */
export interface FrameKind {
  readonly type: number
  readonly flags: number
}

/** The frames that this service sends. */
export const sentFrames = {
  headers: { type: frameTypes.headers, flags: frameFlags.endHeaders },
  trailers: { type: frameTypes.headers, flags: frameFlags.endHeaders | frameFlags.endStream },
  data: { type: frameTypes.data, flags: 0 },
  reset: { type: frameTypes.reset, flags: 0 },
  settings: { type: frameTypes.settings, flags: 0 },
  settingsKept: { type: frameTypes.settings, flags: frameFlags.acknowledge },
  ping: { type: frameTypes.ping, flags: 0 },
  pong: { type: frameTypes.ping, flags: frameFlags.acknowledge },
  goAway: { type: frameTypes.goAway, flags: 0 },
  windowUpdate: { type: frameTypes.windowUpdate, flags: 0 },
} as const
