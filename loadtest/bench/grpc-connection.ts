// One HTTP/2 connection of the load generator for ShouldRateLimit calls. It writes frames directly
// and reads only the first field of responses, so that the generator costs a few µs per call. An
// unexpected frame aborts the run.
import { connect, type Socket } from 'node:net'
import { type Frame, frameOf, FRAME_HEADER_BYTES, frameTypes, readFrame } from './http2-frame.ts'

/** The overall code of a RateLimitResponse; `failed`: the call has no response. */
export type OverallCode = 'ok' | 'over' | 'failed'

/** A connection with many calls in flight. */
export interface GrpcConnection {
  /** Queues a call; `onResponse` gets the same `slot`. */
  add(slot: number, call: Call): void
  /** Sends the queued calls. */
  flush(): void
  close(): void
}

/** A call's frames; calls of one connection differ only in the stream identifier. */
export interface Call {
  readonly frames: Buffer
  readonly dataBytes: number
}

const READ_BYTES = 64 * 1024
const CONNECT_MS_MAX = 5000
const RECEIVE_WINDOW_SIZE = 2 ** 30
const INITIAL_WINDOW_SIZE = 65_535
const HEADER_TABLE_BYTES_MIN = 4096
const FLAG_ACK = 1
const FLAG_END_STREAM = 1
const FLAG_END_HEADERS = 4
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const METHOD_PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

/** A WINDOW_UPDATE frame for the connection. */
const windowUpdate = frameOf(frameTypes.windowUpdate, 0, bytesOf(RECEIVE_WINDOW_SIZE))

/** The first call's fields, which enter the dynamic table; 0x40: literal with indexing. */
const firstHeaders = Buffer.concat([
  Buffer.from([0x83, 0x86]), // POST, http
  literal(0x44, METHOD_PATH),
  literal(0x41, 'bench'), // :authority
  literal(0x5f, 'application/grpc'),
  Buffer.concat([Buffer.from([0x40]), stringLiteral('te'), stringLiteral('trailers')]),
])
/** The same six fields by their index; the newest entry of the dynamic table has index 62. */
const laterHeaders = Buffer.from([0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe])

function bytesOf(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}

function stringLiteral(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
}

function literal(nameIndex: number, value: string): Buffer {
  return Buffer.concat([Buffer.from([nameIndex]), stringLiteral(value)])
}

/** The frames of a call with this serialised request. */
export function callOf(request: Buffer): Call {
  return framesOf(laterHeaders, request)
}

function framesOf(headers: Buffer, request: Buffer): Call {
  const message = Buffer.alloc(5 + request.length) // compressed flag 0, length, message
  message.writeUInt32BE(request.length, 1)
  request.copy(message, 5)
  const headersFrame = frameOf(frameTypes.headers, FLAG_END_HEADERS, headers)
  const dataFrame = frameOf(frameTypes.data, FLAG_END_STREAM, message)
  return { frames: Buffer.concat([headersFrame, dataFrame]), dataBytes: message.length }
}

/**
 * Connects to `port` on loopback and sends a first call, whose response is not reported. Throws if
 * it fails; later errors go to `onFault`.
 */
export async function openGrpcConnection(options: {
  readonly port: number
  readonly firstRequest: Buffer
  readonly onResponse: (slot: number, code: OverallCode) => void
  readonly onFault: (error: Error) => void
}): Promise<GrpcConnection> {
  const socket = connect({ host: '127.0.0.1', port: options.port, noDelay: true })
  let fail = options.onFault
  let deliver: (slot: number, code: OverallCode) => void = () => undefined
  const streams = startHttp2(socket, {
    onResponse: (slot, code) => {
      deliver(slot, code)
    },
    onFault: (error) => {
      fail(error)
    },
  })
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`the server did not respond within ${CONNECT_MS_MAX} ms`))
    }, CONNECT_MS_MAX)
    fail = reject
    deliver = (_slot, code) => {
      clearTimeout(timer)
      if (code === 'failed') reject(new Error('the first call failed'))
      else resolve()
    }
    streams.add(0, framesOf(firstHeaders, options.firstRequest))
    streams.flush()
  }).catch((error: unknown) => {
    streams.close()
    throw error
  })
  fail = options.onFault
  deliver = options.onResponse
  return streams
}

interface Listeners {
  readonly onResponse: (slot: number, code: OverallCode) => void
  readonly onFault: (error: Error) => void
}

function startHttp2(socket: Socket, on: Listeners): GrpcConnection {
  const preface = [PREFACE, frameOf(frameTypes.settings, 0, Buffer.alloc(0)), windowUpdate]
  let queued: Buffer[] = [Buffer.concat(preface)]
  let lastStream = -1
  let sendWindow = INITIAL_WINDOW_SIZE
  let closing = false
  const flush = () => {
    if (queued.length === 0) return
    socket.write(queued.length === 1 ? (queued[0] ?? PREFACE) : Buffer.concat(queued))
    queued = []
  }
  const responses = collectResponses(on.onResponse, (frame) => void queued.push(frame))
  const take = (frame: Frame) => {
    const isAck = (frame.flags & FLAG_ACK) !== 0
    if (frame.type === frameTypes.data || frame.type === frameTypes.headers) responses.take(frame)
    else if (frame.type === frameTypes.windowUpdate) {
      if (frame.stream === 0) sendWindow += frame.payload.readUInt32BE()
    } else if (frame.type === frameTypes.settings) {
      if (!isAck) queued.push(acknowledge(frame))
    } else if (frame.type === frameTypes.ping) {
      if (!isAck) queued.push(frameOf(frameTypes.ping, FLAG_ACK, frame.payload))
    } else {
      const what = frame.payload.toString('latin1').slice(0, 200)
      on.onFault(new Error(`the server sent a frame of type ${frame.type}: ${what}`))
    }
  }
  readFrames(socket, { take, taken: flush, onFault: on.onFault })
  socket.on('error', on.onFault)
  socket.on('close', () => {
    if (!closing) on.onFault(new Error('the server closed a connection'))
  })
  return {
    add(slot, { frames, dataBytes }) {
      lastStream += 2
      responses.expect(lastStream, slot)
      sendWindow -= dataBytes
      if (sendWindow < 0) on.onFault(new Error('the server did not extend its flow-control window'))
      queued.push(withStreamId(frames, lastStream))
    },
    flush,
    close() {
      closing = true
      socket.destroy()
    },
  }
}

/** Calls `take` for each complete frame, and `taken` after the last of a chunk. */
function readFrames(
  socket: Socket,
  on: { take: (frame: Frame) => void; taken: () => void; onFault: (error: Error) => void },
): void {
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    for (let frame = readFrame(bytes, at); frame !== undefined; frame = readFrame(bytes, at)) {
      at += FRAME_HEADER_BYTES + frame.payload.length
      on.take(frame)
    }
    rest = Buffer.from(bytes.subarray(at))
    if (rest.length > READ_BYTES) on.onFault(new Error('the server sent a frame that is too long'))
    on.taken()
  })
}

/** Reads the overall code from the frames of each response; extends the window. */
function collectResponses(onResponse: Listeners['onResponse'], send: (frame: Buffer) => void) {
  const slots = new Map<number, { readonly slot: number; code: OverallCode }>()
  let readBytes = 0
  return {
    expect(stream: number, slot: number) {
      slots.set(stream, { slot, code: 'failed' })
    },
    take({ type, flags, stream, payload }: Frame) {
      const entry = slots.get(stream)
      if (type === frameTypes.data) {
        readBytes += payload.length
        // After gRPC's prefix of 5 bytes: field 1, a varint, is the overall code.
        if (entry !== undefined && payload[5] === 0x08) {
          entry.code = payload[6] === 1 ? 'ok' : payload[6] === 2 ? 'over' : 'failed'
        }
      }
      if (readBytes > RECEIVE_WINDOW_SIZE / 2) {
        readBytes -= RECEIVE_WINDOW_SIZE
        send(windowUpdate)
      }
      if ((flags & FLAG_END_STREAM) === 0) return
      slots.delete(stream)
      if (entry !== undefined) onResponse(entry.slot, entry.code)
    },
  }
}

/** A copy of a call's two frames with the stream identifier in both. */
function withStreamId(frames: Buffer, stream: number): Buffer {
  const copy = Buffer.allocUnsafe(frames.length)
  frames.copy(copy)
  copy.writeUInt32BE(stream, 5)
  const headersBytes = frames.readUIntBE(0, 3)
  copy.writeUInt32BE(stream, FRAME_HEADER_BYTES + headersBytes + 5)
  return copy
}

/** The SETTINGS ack. Throws if the server's header table is too small for the first call. */
function acknowledge({ payload }: Frame): Buffer {
  for (let at = 0; at + 6 <= payload.length; at += 6) {
    const [name, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)]
    if (name === 1 && value < HEADER_TABLE_BYTES_MIN) {
      throw new Error(`the server's header table is too small: ${value} bytes`)
    }
  }
  return frameOf(frameTypes.settings, FLAG_ACK, Buffer.alloc(0))
}
