// Attacks on the per-process bounds of the gRPC listener: each opens many connections, or sends
// frames that are valid but expensive. grpc-attacker.ts runs them.
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { callHeaders, frame, many, uint32 } from './grpc-frames.ts'

/** What one connection of an attack sends. */
interface AttackConnection {
  /** Sent first. */
  readonly first?: Buffer
  /** Sent repeatedly, as fast as the server reads; its stream ids start at `stream`. */
  readonly next?: (stream: number) => Buffer
  /** The number of streams that one `next` uses. */
  readonly streams?: number
  /** Whether it reads responses. */
  readonly reads?: boolean
}

/** An attack with many connections. */
interface Attack extends AttackConnection {
  readonly connections: number
}

const literal = (first: number, name: string, value: string) =>
  Buffer.concat([
    Buffer.from([first, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
const headers = (stream: number, block: Buffer, flags = 4) =>
  frame({ type: frameTypes.headers, flags }, stream, block)
const data = (stream: number, bytes: Buffer, flags = 0) =>
  frame({ type: frameTypes.data, flags }, stream, bytes)
const asCall = (stream: number, message: Buffer) => {
  const framed = Buffer.concat([Buffer.alloc(1), uint32(message.length), message])
  const chunks = Array.from({ length: Math.ceil(framed.length / 16_000) }, (_, i) =>
    framed.subarray(i * 16_000, (i + 1) * 16_000),
  )
  return Buffer.concat([
    headers(stream, callHeaders),
    ...chunks.map((chunk, i) => data(stream, chunk, i === chunks.length - 1 ? 1 : 0)),
  ])
}
const delimited = (field: number, value: Buffer) => {
  const { length } = value
  const size = length < 128 ? [length] : [(length & 127) | 128, length >> 7]
  return Buffer.concat([Buffer.from([field * 8 + 2, ...size]), value])
}
const text = (field: number, value: string) => delimited(field, Buffer.from(value))
const largeMessage = Buffer.concat([
  text(1, 'shop'),
  many(100, (i) =>
    delimited(
      2,
      many(100, (j) => delimited(1, Buffer.concat([text(1, 'k'), text(2, `${i}.${j}`)]))),
    ),
  ),
])
const unlimited = Buffer.concat([callHeaders, literal(0, 'grpc-timeout', '99999999H')])
const methodHeaders = (path: string, type = 'application/grpc') =>
  Buffer.concat([
    Buffer.from([0x83, 0x86]),
    Buffer.concat([Buffer.from([4, path.length]), Buffer.from(path)]),
    literal(0, 'content-type', type),
  ])
const reflection = methodHeaders('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
const unknownFrame = frame({ type: 0xfe }, 0, Buffer.alloc(16_384))
const fileRequest = text(4, 'envoy.service.ratelimit.v3.RateLimitService')
const fileMessage = Buffer.concat([Buffer.alloc(1), uint32(fileRequest.length), fileRequest])

/** The attacks, by name. */
export const attacks: Readonly<Record<string, Attack>> = {
  'open-calls': {
    connections: 1221,
    first: many(1000, (i) => headers(2 * i + 1, unlimited)),
    reads: true,
  },
  'header-blocks': {
    connections: 6200,
    first: Buffer.concat([
      headers(1, Buffer.alloc(16_000, 0x82), 0),
      frame({ type: frameTypes.continuation }, 1, Buffer.alloc(12_000, 0x82)),
    ]),
    reads: true,
  },
  'received-chunks': {
    connections: 2000,
    first: Buffer.concat([
      many(3, () => unknownFrame),
      headers(1, unlimited),
      many(5, () => unknownFrame),
    ]),
    reads: true,
  },
  messages: {
    connections: 64,
    first: many(15, (i) =>
      Buffer.concat([
        headers(2 * i + 1, unlimited),
        data(2 * i + 1, Buffer.concat([Buffer.from([0]), uint32(4_000_000), Buffer.alloc(16_000)])),
        data(2 * i + 1, Buffer.alloc(16_000)),
        data(2 * i + 1, Buffer.alloc(16_000)),
        data(2 * i + 1, Buffer.alloc(16_000)),
      ]),
    ),
    reads: true,
  },
  windows: {
    connections: 2,
    first: headers(1, unlimited),
    next: () => many(5000, () => frame({ type: frameTypes.windowUpdate }, 1, uint32(1))),
    reads: true,
  },
  'no-grpc': {
    connections: 2,
    next: (stream) => many(200, (i) => headers(stream + 2 * i, methodHeaders('/', 'text/html'), 5)),
    streams: 200,
    reads: true,
  },
  evictions: {
    connections: 2,
    next: (stream) =>
      many(20, (i) =>
        headers(
          stream + 2 * i,
          Buffer.concat([callHeaders, many(400, (j) => literal(0x40, `x${j}`, 'y'))]),
          5,
        ),
      ),
    streams: 20,
    reads: true,
  },
  'large-calls': {
    connections: 2,
    next: (stream) => asCall(stream, largeMessage),
    streams: 1,
    reads: true,
  },
  reflection: {
    connections: 2,
    next: (stream) =>
      Buffer.concat([
        headers(stream, reflection),
        data(
          stream,
          many(200, () => fileMessage),
          1,
        ),
      ]),
    streams: 1,
    reads: true,
  },
  'no-reads': {
    connections: 500,
    next: (stream) => many(50, (i) => asCall(stream + 2 * i, largeMessage.subarray(0, 6))),
    streams: 50,
    reads: false,
  },
}
