// An HTTP/2 client that writes raw frames, for frames that no library would send.
import { connect, type Socket } from 'node:net'
import {
  type Frame,
  frameOf,
  FRAME_HEADER_BYTES,
  readFrame,
} from '../../../loadtest/bench/http2-frame.ts'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { waitFor } from '../wait-for.ts'

/** The preface and settings that open a connection. */
export const opening = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frameOf(frameTypes.settings, 0, Buffer.alloc(0)),
])

/** A frame on any stream. */
export function frame(
  kind: { readonly type: number; readonly flags?: number },
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const bytes = frameOf(kind.type, kind.flags ?? 0, payload)
  bytes.writeUInt32BE(stream, 5)
  return bytes
}

/** A 32-bit number as a frame contains it. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** `count` frames, of which `create` returns each. */
export function many(count: number, create: (i: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => create(i)))
}

/** The headers of a ShouldRateLimit call, each field as a literal. */
export const callHeaders = Buffer.concat(
  [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'],
    ['content-type', 'application/grpc'],
  ].map(([name = '', value = '']) =>
    Buffer.from(
      `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`,
    ),
  ),
)

/** A HEADERS frame; by default with the complete headers of a call. */
export function headersOn(stream: number, flags = 4, block = callHeaders): Buffer {
  return frame({ type: frameTypes.headers, flags }, stream, block)
}

/** An empty request as a gRPC message. */
export const emptyCall = Buffer.from([0, 0, 0, 0, 2, 10, 0])

/** A complete call. */
export function callOn(stream: number): Buffer {
  return Buffer.concat([
    headersOn(stream),
    frame({ type: frameTypes.data, flags: 1 }, stream, emptyCall),
  ])
}

const bytesOf = ({ payload }: Frame) => FRAME_HEADER_BYTES + payload.length

/** The complete frames in these bytes. */
export function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  let at = 0
  for (let next = readFrame(bytes, at); next !== undefined; next = readFrame(bytes, at)) {
    frames.push(next)
    at += bytesOf(next)
  }
  return frames
}

/** A connection and the frames that it received. */
export interface FrameClient {
  readonly socket: Socket
  readonly frames: readonly Frame[]
  /** Resolves with the first frame of this type, on this stream if it is set. */
  readonly frame: (type: number, stream?: number) => Promise<Frame>
  /** Resolves with the error code of the last GOAWAY once the server has closed the connection. */
  readonly closed: () => Promise<number | undefined>
}

/** Connects to a port of loopback and sends these bytes. */
export function openFrames(port: number, bytes: Buffer): FrameClient {
  const frames: Frame[] = []
  let rest = Buffer.alloc(0)
  let isClosed = false
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    const complete = framesOf(rest)
    frames.push(...complete)
    rest = rest.subarray(complete.reduce((bytes, one) => bytes + bytesOf(one), 0))
  })
  socket.on('error', () => undefined) // 'close' follows
  socket.on('close', () => (isClosed = true))
  socket.write(bytes)
  const find = (type: number, stream?: number) =>
    frames.find((one) => one.type === type && (stream ?? one.stream) === one.stream)
  return {
    socket,
    frames,
    async frame(type, stream) {
      await waitFor(`a frame of type ${type}`, () => find(type, stream) !== undefined)
      const found = find(type, stream)
      if (found === undefined) throw new Error('no such frame')
      return found
    },
    async closed() {
      await waitFor('the connection to close', () => isClosed)
      return frames.findLast(({ type }) => type === frameTypes.goaway)?.payload.readUInt32BE(4)
    },
  }
}
