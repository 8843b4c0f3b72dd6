// The bounds of what one gRPC client costs other clients and the process, regardless of what it
// sends and reads: verified on connections without a socket.
import { Duplex } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import type { Frame } from '../../../loadtest/bench/http2-frame.ts'
import { createHttp2Transport } from '../../../src/grpc/http2-transport.ts'
import { CallStream } from '../../../src/grpc/http2/call-stream.ts'
import { Http2Connection } from '../../../src/grpc/http2/connection.ts'
import { ProcessBounds } from '../../../src/grpc/http2/process-bounds.ts'
import { RoundRobinScheduler } from '../../../src/grpc/http2/round-robin-scheduler.ts'
import { StreamingCall, type StreamingMethod } from '../../../src/grpc/streaming-call.ts'
import { UnaryCall } from '../../../src/grpc/unary-call.ts'
import { admitAll } from '../../kit/ratelimit/grpc-client.ts'
import {
  callHeaders,
  callOn,
  emptyCall,
  frame,
  framesOf,
  headersOn,
  many,
  opening,
  uint32,
} from '../../kit/ratelimit/grpc-frames.ts'
import { waitFor } from '../../kit/wait-for.ts'

const WINDOW_MAX = 2 ** 31 - 1
const cleanups: (() => unknown)[] = []
const defects: unknown[] = []
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp()
  defects.length = 0
})
const onDefect = (error: unknown) => defects.push(error)

/** A connection without a socket; without `reads` its writes stay buffered. */
function openPipe({ reads = true } = {}) {
  const written: Buffer[] = []
  const duplex = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      written.push(chunk)
      if (reads) done()
    },
  })
  cleanups.push(() => duplex.destroy())
  return { duplex, frames: () => framesOf(Buffer.concat(written)) }
}

function openConnection(startCall: (stream: CallStream) => void) {
  const pipe = openPipe()
  const nowMs = () => performance.now()
  const bounds = new ProcessBounds(() => undefined)
  const share = bounds.open('a', () => undefined)
  if (share === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const connection = new Http2Connection(pipe.duplex, {
    startCall,
    nowMs,
    budgets: share.budgets,
    address: 'a',
    scheduler: new RoundRobinScheduler(nowMs),
    onDefect,
    onClose: () => undefined,
  })
  return { ...pipe, connection, bounds }
}

function openReflection() {
  const pipe = openPipe({ reads: false })
  const ages = { ageMsMax: 0, graceMs: 0 }
  const deps = { decide: admitAll, onCall: () => undefined, onDefect, ...ages }
  createHttp2Transport(deps).serve(pipe.duplex)
  return pipe
}

const windowUpdate = (stream: number, more: number) =>
  frame({ type: frameTypes.windowUpdate }, stream, uint32(more))
const initialWindow = (bytes: number) =>
  frame({ type: frameTypes.settings }, 0, Buffer.concat([Buffer.from([0, 4]), uint32(bytes)]))
const reset = (stream: number) => frame({ type: frameTypes.rstStream }, stream, uint32(8))
const data = (stream: number, bytes: Buffer, flags = 0) =>
  frame({ type: frameTypes.data, flags }, stream, bytes)
const endsCall = ({ type, flags }: Frame) => type === frameTypes.headers && (flags & 1) === 1

const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
const reflectionHeaders = Buffer.concat([
  Buffer.from([0x83, 0x86, 0x04, REFLECTION.length]),
  Buffer.from(REFLECTION),
  callHeaders.subarray(callHeaders.indexOf('\0\x0ccontent-type')),
])
const message = (bytes: Buffer) => Buffer.concat([Buffer.alloc(1), uint32(bytes.length), bytes])
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService'
const fileRequest = message(
  Buffer.concat([Buffer.from([0x22, SERVICE.length]), Buffer.from(SERVICE)]),
)
const listRequest = message(Buffer.from([0x3a, 0]))
const reflect = (requests: Buffer) => {
  const frames = Array.from({ length: Math.ceil(requests.length / 16_000) }, (_, i) =>
    data(1, requests.subarray(i * 16_000, (i + 1) * 16_000)),
  )
  return Buffer.concat([
    ...[opening, initialWindow(WINDOW_MAX), windowUpdate(0, WINDOW_MAX - 65_535)],
    frame({ type: frameTypes.headers, flags: 4 }, 1, reflectionHeaders),
    ...frames,
  ])
}

test('the listener buffers few responses of a client that reads nothing', async () => {
  const { duplex, frames } = openReflection()
  duplex.push(reflect(many(1200, () => fileRequest)))
  await waitFor('a response', () => frames().length > 0)
  expect(duplex.writableLength).toBeLessThan(512 * 1024)
})

test('the listener processes messages that arrive together one by one', async () => {
  const { duplex, frames } = openConnection((stream) => {
    const open = () => ({
      message: () => {
        stream.write(Buffer.from('fine'))
        return undefined
      },
      halfClosed: () => {
        stream.end()
        return undefined
      },
    })
    stream.listener = new StreamingCall({ open, onDefect }, stream, 'identity')
  })
  const requests = 8000
  duplex.push(
    Buffer.concat([reflect(many(requests, () => listRequest)), data(1, Buffer.alloc(0), 1)]),
  )
  await waitFor('the completion of the stream', () => frames().some(endsCall))
  expect(frames().filter(({ type }) => type === frameTypes.data)).toHaveLength(requests)
  expect(defects).toEqual([])
})

const closes: Record<string, Partial<StreamingMethod> & { readonly sent?: Buffer }> = {
  'its method rejects it': { message: () => ({ code: 'INTERNAL', details: 'no' }) },
  'its client resets it': { sent: reset(1) },
  'its client sends half a message': { sent: data(1, emptyCall.subarray(0, 6), 1) },
  'its method throws': {
    message: () => {
      throw new Error('a defect')
    },
  },
  'its method throws at the half-close': {
    sent: data(1, Buffer.alloc(0), 1),
    halfClosed: () => {
      throw new Error('a defect')
    },
  },
}

test.each(Object.entries(closes))(
  'the listener releases the memory of a stream after %s',
  async (_, given) => {
    const closed = jest.fn()
    const method = { message: () => undefined, halfClosed: () => undefined, closed, ...given }
    const { duplex, frames, bounds } = openConnection((stream) => {
      const open = () => method
      if (stream.id === 1)
        stream.listener = new StreamingCall({ open, onDefect }, stream, 'identity')
      else stream.rejectHttp(404)
    })
    const { sent = Buffer.alloc(0) } = given
    duplex.push(Buffer.concat([opening, headersOn(1), data(1, emptyCall), sent, callOn(3)]))
    await waitFor('the next call', () => frames().some((one) => endsCall(one) && one.stream === 3))
    expect([bounds.usage.messages.used, closed.mock.calls.length]).toEqual([0, 1])
  },
)

test('the listener releases the memory of a stream after its method completes it', async () => {
  const { duplex, frames, bounds } = openConnection((stream) => {
    const halfClosed = () => {
      stream.end()
      return undefined
    }
    const open = () => ({ message: () => undefined, halfClosed })
    stream.listener = new StreamingCall({ open, onDefect }, stream, 'identity')
  })
  duplex.push(Buffer.concat([opening, headersOn(1), data(1, emptyCall, 1)]))
  await waitFor('its completion', () => frames().some(endsCall))
  expect(bounds.usage.messages.used).toBe(0)
})

test('a defect in a call resets only that call', async () => {
  const { duplex, frames } = openConnection((stream) => {
    if (stream.id === 1) throw new Error('a defect at the start')
    if (stream.id === 3) {
      stream.listener = {
        closed: () => undefined,
        receive: () => {
          throw new Error('a defect on data')
        },
      }
    } else stream.respond(Buffer.from('fine'))
  })
  duplex.push(Buffer.concat([opening, callOn(1), callOn(3), callOn(5)]))
  await waitFor('a response', () => frames().some((one) => endsCall(one) && one.stream === 5))
  const resets = frames().filter(({ type }) => type === frameTypes.rstStream)
  expect(resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])).toEqual([
    [1, 2],
    [3, 2],
  ])
  expect(defects).toHaveLength(2)
})

test('a small window update wakes only as many streams as can send', async () => {
  const { duplex, frames } = openConnection((stream) => {
    stream.respond(Buffer.from('a message'))
  })
  duplex.push(Buffer.concat([opening, initialWindow(0), many(1000, (i) => callOn(2 * i + 1))]))
  await waitFor('their headers', () => frames().filter(({ type }) => type === 1).length === 1000)
  const pump = jest.spyOn(CallStream.prototype, 'pump')
  cleanups.push(() => {
    pump.mockRestore()
  })
  duplex.push(many(1000, () => windowUpdate(0, 1)))
  const sent = () => frames().filter(({ type }) => type === frameTypes.data)
  duplex.push(many(1000, (i) => windowUpdate(2 * i + 1, 1)))
  await waitFor('a byte of each', () => sent().length === 1000)
  expect(pump.mock.calls.length).toBeLessThan(3000)
})

test('resets of calls in flight do not count as a flood', async () => {
  const inFlight: (() => void)[] = []
  const method = async () => {
    await new Promise<void>((resolve) => inFlight.push(resolve))
    return { code: 'OK', message: Buffer.from('fine') } as const
  }
  const { duplex, frames } = openConnection((stream) => {
    stream.listener = new UnaryCall({ method, onDefect }, stream, 'identity')
  })
  duplex.push(opening)
  const [rounds, each] = [15, 1000]
  for (let round = 0; round < rounds; round += 1) {
    const id = (i: number) => 2 * (round * each + i) + 1
    duplex.push(many(each, (i) => Buffer.concat([callOn(id(i)), reset(id(i))])))
    await waitFor('the calls', () => inFlight.length === each)
    for (const resolve of inFlight.splice(0)) resolve()
    await new Promise((resolve) => setImmediate(resolve)) // their slots are released
  }
  duplex.push(callOn(2 * rounds * each + 1))
  await waitFor('another call', () => inFlight.length === 1)
  inFlight[0]?.()
  await waitFor('its response', () => frames().some(endsCall))
})

test('empty data on a call that has got its response counts as a flood', async () => {
  const { duplex, frames } = openConnection((stream) => {
    stream.rejectHttp(404)
  })
  duplex.push(Buffer.concat([opening, headersOn(1), many(40_000, () => data(1, Buffer.alloc(0)))]))
  await waitFor('GOAWAY', () => frames().some(({ type }) => type === frameTypes.goaway))
})

test('trailers that HTTP/2 forbids reset their call', async () => {
  const started: number[] = []
  const { duplex, frames } = openConnection((stream) => started.push(stream.id))
  const trailers = (stream: number, block: string) =>
    frame({ type: frameTypes.headers, flags: 5 }, stream, Buffer.from(block, 'latin1'))
  duplex.push(
    Buffer.concat([
      ...[opening, headersOn(1), headersOn(3), headersOn(5)],
      ...[trailers(1, '\x83'), trailers(3, '\0\x01X\x01y'), trailers(5, '\0\x01x\x01y')],
    ]),
  )
  await waitFor('two resets', () => frames().filter(({ type }) => type === 3).length === 2)
  expect(started).toEqual([1, 3, 5])
  expect(frames().filter(({ type }) => type === 3 || type === frameTypes.goaway)).toMatchObject([
    { stream: 1 },
    { stream: 3 },
  ])
})

test('data that is not consumed resets its stream, and frees the connection window', async () => {
  const { duplex, frames } = openConnection((stream) => {
    stream.listener = { receive: () => undefined, closed: () => undefined }
    stream.write(Buffer.from('a response that is not read'))
  })
  const flood = many(40, () => data(1, Buffer.alloc(16_000)))
  duplex.push(Buffer.concat([opening, initialWindow(0), headersOn(1), flood]))
  const updates = () => frames().filter(({ type }) => type === frameTypes.windowUpdate)
  await waitFor('the connection window', () => updates().length === 2)
  expect(updates().map(({ stream }) => stream)).toEqual([0, 0])
  expect(updates()[1]?.payload.readUInt32BE()).toBeGreaterThan(512 * 1024)
  const resets = frames().filter(({ type }) => type === frameTypes.rstStream)
  expect(resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])).toEqual([[1, 3]])
})
