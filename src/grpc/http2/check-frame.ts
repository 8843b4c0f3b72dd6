// Checks a frame's stream id and size by its type (RFC 9113 §6). Stateless; the connection checks
// the order of frames, and that DATA and CONTINUATION are on a stream.
import { errorCodes, frameTypes } from './frames.ts'
import type { Frame } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

/** Types that are not allowed on stream 0 (the connection), and types only allowed there. */
const streamTypes = new Set<number>([frameTypes.priority, frameTypes.rstStream])
const connectionTypes = new Set<number>([frameTypes.settings, frameTypes.ping, frameTypes.goaway])
/** Payload bytes of the frame types with a fixed size. */
const payloadBytes = new Map<number, number>([
  [frameTypes.priority, 5],
  [frameTypes.rstStream, 4],
  [frameTypes.ping, 8],
  [frameTypes.windowUpdate, 4],
])
/** Bytes of Last-Stream-ID and error code. */
const GOAWAY_BYTES_MIN = 8

/** Throws ProtocolError for an invalid frame. */
export function checkFrame({ type, streamId, payload }: Frame): void {
  if (type === frameTypes.pushPromise) {
    throw new ProtocolError(errorCodes.protocol, 'a client must not send PUSH_PROMISE')
  }
  if (type === frameTypes.headers && streamId % 2 === 0) {
    throw new ProtocolError(errorCodes.protocol, 'the stream identifiers of a client must be odd')
  }
  if (streamId === 0 ? streamTypes.has(type) : connectionTypes.has(type)) {
    throw new ProtocolError(errorCodes.protocol, 'the frame type is not allowed on this stream')
  }
  const isGoaway = type === frameTypes.goaway
  const bytes = isGoaway ? Math.max(payload.length, GOAWAY_BYTES_MIN) : payloadBytes.get(type)
  if (bytes !== undefined && bytes !== payload.length) {
    throw new ProtocolError(errorCodes.frameSize, 'the frame has an invalid size for its type')
  }
}
