// Reads and writes HTTP/2 frames (RFC 9113 §4.1) without interpreting their payload.

/** The frame types that the load generator uses. */
export const frameTypes = { data: 0, headers: 1, settings: 4, ping: 6, windowUpdate: 8 } as const

/** One frame. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** Bytes before the payload: length (3), type, flags, stream identifier (4). */
export const FRAME_HEADER_BYTES = 9

/** A frame of stream 0. */
export function frameOf(type: number, flags: number, payload: Buffer): Buffer {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + payload.length)
  frame.writeUIntBE(payload.length, 0, 3)
  frame[3] = type
  frame[4] = flags
  payload.copy(frame, FRAME_HEADER_BYTES)
  return frame
}

/** The frame at offset `at`; undefined if it is incomplete. */
export function readFrame(bytes: Buffer, at: number): Frame | undefined {
  const start = at + FRAME_HEADER_BYTES
  if (start > bytes.length) return undefined
  const end = start + bytes.readUIntBE(at, 3)
  if (end > bytes.length) return undefined
  return {
    type: bytes[at + 3] ?? 0,
    flags: bytes[at + 4] ?? 0,
    stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
    payload: bytes.subarray(start, end),
  }
}
