// Checks a frame's stream id and size by its type (RFC 9113 §6). Stateless; the connection checks
// the order of frames.
import { errorCodes, frameTypes } from './frames.ts'
import type { Frame } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

const onStreams = new Set<number>([frameTypes.priority, frameTypes.rstStream])
const onConnection = new Set<number>([frameTypes.settings, frameTypes.ping, frameTypes.goAway])
/** Payload bytes of the types with a fixed size. */
const payloadBytes = new Map<number, number>([
  [frameTypes.priority, 5],
  [frameTypes.rstStream, 4],
  [frameTypes.ping, 8],
  [frameTypes.windowUpdate, 4],
])
/** Last-Stream-ID and error code. */
const GOAWAY_BYTES_MIN = 8

/** Throws ProtocolError for an invalid frame. */
export function checkFrame({ type, stream, payload }: Frame): void {
  if (type === frameTypes.pushPromise) {
    throw new ProtocolError(errorCodes.protocol, 'a client must not push')
  }
  if (type === frameTypes.headers && stream % 2 === 0) {
    throw new ProtocolError(errorCodes.protocol, 'a client must use odd stream numbers')
  }
  if (stream === 0 ? onStreams.has(type) : onConnection.has(type)) {
    throw new ProtocolError(errorCodes.protocol, 'such a frame is not of this stream')
  }
  const isGoAway = type === frameTypes.goAway
  const bytes = isGoAway ? Math.max(payload.length, GOAWAY_BYTES_MIN) : payloadBytes.get(type)
  if (bytes !== undefined && bytes !== payload.length) {
    throw new ProtocolError(errorCodes.frameSize, 'such a frame has another size')
  }
}
