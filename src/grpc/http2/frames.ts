// The numbers in HTTP/2 frames (RFC 9113): types, flags, settings, error codes.

/** Frame types. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** Frame flags; ACK has the same bit as END_STREAM. */
export const frameFlags = {
  endStream: 1,
  ack: 1,
  endHeaders: 4,
  padded: 8,
  priority: 32,
} as const

/** SETTINGS parameters. */
export const settingNames = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

/** Error codes of RST_STREAM and GOAWAY. */
export const errorCodes = {
  noError: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  compression: 9,
  enhanceYourCalm: 11,
} as const

/** One of the error codes. */
export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes]

/** Bytes of the frame header: 3 for the length, 1 for type and flags each, 4 for the stream id. */
export const FRAME_HEADER_BYTES = 9
/** The default SETTINGS_MAX_FRAME_SIZE. */
export const DEFAULT_MAX_FRAME_SIZE = 16_384
/** The default SETTINGS_INITIAL_WINDOW_SIZE; also the initial window of a connection. */
export const INITIAL_WINDOW_SIZE = 65_535
/** The maximum size of a flow-control window. */
export const MAX_WINDOW_SIZE = 2 ** 31 - 1
/** The highest stream identifier. */
export const MAX_STREAM_ID = 2 ** 31 - 1

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
  rstStream: { type: frameTypes.rstStream, flags: 0 },
  settings: { type: frameTypes.settings, flags: 0 },
  settingsAck: { type: frameTypes.settings, flags: frameFlags.ack },
  ping: { type: frameTypes.ping, flags: 0 },
  pingAck: { type: frameTypes.ping, flags: frameFlags.ack },
  goaway: { type: frameTypes.goaway, flags: 0 },
  windowUpdate: { type: frameTypes.windowUpdate, flags: 0 },
} as const
