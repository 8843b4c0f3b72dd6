// What a frame of HTTP/2 must look like by its type: its stream and its size (RFC 9113 §6). Keeps
// nothing; whether the frame fits what came before is the connection's to say.
import { errorCodes, frameTypes } from './frames.ts'
import type { Frame } from './frame-reader.ts'
import { ProtocolError } from './protocol-error.ts'

const ofStreams = new Set<number>([frameTypes.priority, frameTypes.reset])
const ofNoStream = new Set<number>([frameTypes.settings, frameTypes.ping, frameTypes.goAway])
/** Bytes of the payload, of types that always have so many. */
const payloadBytes = new Map<number, number>([
  [frameTypes.priority, 5],
  [frameTypes.reset, 4],
  [frameTypes.ping, 8],
  [frameTypes.windowUpdate, 4],
])
/** A stream and an error. */
const GOAWAY_BYTES_MIN = 8

/** Throws ProtocolError for a frame that cannot be. */
export function checkFrame({ type, stream, payload }: Frame): void {
  if (type === frameTypes.push) {
    throw new ProtocolError(errorCodes.protocol, 'a client must not push')
  }
  if (type === frameTypes.headers && stream % 2 === 0) {
    throw new ProtocolError(errorCodes.protocol, 'a client begins streams of odd numbers')
  }
  if (stream === 0 ? ofStreams.has(type) : ofNoStream.has(type)) {
    throw new ProtocolError(errorCodes.protocol, 'such a frame is not of this stream')
  }
  const isGoAway = type === frameTypes.goAway
  const bytes = isGoAway ? Math.max(payload.length, GOAWAY_BYTES_MIN) : payloadBytes.get(type)
  if (bytes !== undefined && bytes !== payload.length) {
    throw new ProtocolError(errorCodes.frameSize, 'such a frame has another size')
  }
}
