// HTTP/2 frames that no library would send: each violation and each flood closes its connection
// with its error code; other connections are not affected.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import {
  createTestClient,
  admitAll,
  startTestServer,
  type TestServer,
} from '../../kit/ratelimit/grpc-client.ts'
import {
  callHeaders,
  callOn,
  emptyCall,
  frame,
  headersOn,
  many,
  openFrames,
  opening,
  uint32,
} from '../../kit/ratelimit/grpc-frames.ts'
import { waitFor } from '../../kit/wait-for.ts'

const cleanups: (() => unknown)[] = []
let server: TestServer
let inFlight: (() => void)[] | undefined

beforeEach(async () => {
  inFlight = undefined
  server = await startTestServer({}, { closeMsMax: 0, decide })
})
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0)) cleanUp()
  await server.close()
  expect(server.defects).toEqual([])
})

/** Admits every request, after the test releases it if calls are held in flight. */
const decide: typeof admitAll = async (request) => {
  const held = inFlight
  if (held !== undefined) await new Promise<void>((resolve) => held.push(resolve))
  return admitAll(request)
}

function open(...frames: readonly Buffer[]) {
  const client = openFrames(server.port, Buffer.concat([opening, ...frames]))
  cleanups.push(() => client.socket.destroy())
  return client
}

async function expectOthersServed(): Promise<void> {
  const client = createTestClient(`127.0.0.1:${server.port}`)
  cleanups.push(() => {
    client.close()
  })
  const descriptors = [{ entries: [{ key: 'k', value: 'v' }] }]
  expect(await client.call({ domain: 'edge', descriptors })).toMatchObject({ overallCode: 'OK' })
}

const setting = (name: number, value: number) =>
  Buffer.concat([Buffer.from([0, name]), uint32(value)])
const resetOf = (stream: number) => frame({ type: frameTypes.rstStream }, stream, uint32(8))

test('the response to a raw call has three frames', async () => {
  const { frame: next, frames } = open(callOn(1), callOn(3))
  await next(frameTypes.data, 1)
  await waitFor(
    'the completion of both streams',
    () => frames.filter(({ flags, type }) => type === 1 && (flags & 1) === 1).length === 2,
  )
  const ofStream = frames
    .filter(({ stream }) => stream === 3)
    .map(({ type, flags }) => [type, flags])
  expect(ofStream).toEqual([
    [frameTypes.headers, 4],
    [frameTypes.data, 0],
    [frameTypes.headers, 5],
  ])
})

// Error codes of RFC 9113 §7.
const [PROTOCOL, FLOW, FRAME_SIZE, COMPRESSION, CALM] = [1, 3, 6, 9, 11]

const violations: readonly (readonly [string, number, Buffer])[] = [
  ['a stream with an even id', PROTOCOL, headersOn(2)],
  ['headers on stream 0', PROTOCOL, headersOn(0)],
  ['data before its headers', PROTOCOL, frame({ type: frameTypes.data }, 1, emptyCall)],
  ['a reset of an idle stream', PROTOCOL, resetOf(1)],
  ['a reset of 3 bytes', FRAME_SIZE, frame({ type: frameTypes.rstStream }, 1, Buffer.alloc(3))],
  ['a reset of an even stream id', PROTOCOL, Buffer.concat([callOn(3), resetOf(2)])],
  ['a stream id below the last one', PROTOCOL, Buffer.concat([callOn(5), callOn(3)])],
  ['a stream id that is reused', PROTOCOL, Buffer.concat([callOn(1), resetOf(1), callOn(1)])],
  ['a priority on stream 0', PROTOCOL, frame({ type: frameTypes.priority }, 0, Buffer.alloc(5))],
  ['GOAWAY of 4 bytes', FRAME_SIZE, frame({ type: frameTypes.goaway }, 0, uint32(0))],
  ['ENABLE_PUSH of 2', PROTOCOL, frame({ type: frameTypes.settings }, 0, setting(2, 2))],
  ['PUSH_PROMISE', PROTOCOL, frame({ type: frameTypes.pushPromise, flags: 4 }, 1, uint32(2))],
  ['CONTINUATION without a block', PROTOCOL, frame({ type: frameTypes.continuation }, 1)],
  [
    'a block that another frame interrupts',
    PROTOCOL,
    Buffer.concat([headersOn(1, 0), frame({ type: frameTypes.ping }, 0, Buffer.alloc(8))]),
  ],
  ['more padding than payload', PROTOCOL, headersOn(1, 4 | 8, Buffer.from([200, 0x82]))],
  ['a ping on a stream', PROTOCOL, frame({ type: frameTypes.ping }, 1, Buffer.alloc(8))],
  ['a ping of 7 bytes', FRAME_SIZE, frame({ type: frameTypes.ping }, 0, Buffer.alloc(7))],
  ['settings on a stream', PROTOCOL, frame({ type: frameTypes.settings }, 1)],
  ['settings of 5 bytes', FRAME_SIZE, frame({ type: frameTypes.settings }, 0, Buffer.alloc(5))],
  ['a window of 2^31', FLOW, frame({ type: frameTypes.settings }, 0, setting(4, 2 ** 31))],
  ['MAX_FRAME_SIZE of 16 bytes', PROTOCOL, frame({ type: frameTypes.settings }, 0, setting(5, 16))],
  ['a window update of 0', PROTOCOL, frame({ type: frameTypes.windowUpdate }, 0, uint32(0))],
  [
    'a window update beyond 2^31 - 1',
    FLOW,
    frame({ type: frameTypes.windowUpdate }, 0, uint32(2 ** 31 - 1)),
  ],
  [
    'a block that is not HPACK',
    COMPRESSION,
    headersOn(1, 4, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])),
  ],
  [
    'a frame that is too long',
    FRAME_SIZE,
    frame({ type: frameTypes.data }, 1, Buffer.alloc(16_385)),
  ],
  [
    'an endless block',
    CALM,
    Buffer.concat([headersOn(1, 0), many(20, () => frame({ type: frameTypes.continuation }, 1))]),
  ],
  [
    'a block of 64 KiB',
    CALM,
    Buffer.concat([
      headersOn(1, 0),
      many(4, () => frame({ type: frameTypes.continuation }, 1, Buffer.alloc(16_000, 0x82))),
    ]),
  ],
  ['endless pings', CALM, many(40_000, () => frame({ type: frameTypes.ping }, 0, Buffer.alloc(8)))],
  [
    'endless settings',
    CALM,
    many(40_000, () => frame({ type: frameTypes.settings }, 0, setting(99, 1))),
  ],
  [
    'endless resets',
    CALM,
    many(40_000, (i) => Buffer.concat([headersOn(2 * i + 1), resetOf(2 * i + 1)])),
  ],
  [
    'endless empty data',
    CALM,
    Buffer.concat([headersOn(1), many(40_000, () => frame({ type: frameTypes.data }, 1))]),
  ],
]

test.each(violations)('%s closes its connection with error %i', async (_, code, bytes) => {
  expect(await open(bytes).closed()).toBe(code)
  await expectOthersServed()
})

test('the listener closes a connection that is not HTTP/2, or has no first SETTINGS', async () => {
  const plain = openFrames(server.port, Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  expect(await plain.closed()).toBe(PROTOCOL)
  const preface = opening.subarray(0, 24)
  const early = openFrames(server.port, Buffer.concat([preface, callOn(1)]))
  expect(await early.closed()).toBe(PROTOCOL)
  const reason = early.frames.at(-1)?.payload.toString('latin1', 8)
  expect(reason).toBe('the first frame must be SETTINGS')
})

describe('a call', () => {
  test('beyond a thousand in flight is rejected, even if those were reset', async () => {
    inFlight = []
    const { frame: next } = open(
      many(1000, (i) => callOn(2 * i + 1)),
      many(1000, (i) => resetOf(2 * i + 1)),
      callOn(2001),
    )
    const rejected = await next(frameTypes.rstStream, 2001)
    expect(rejected.payload.readUInt32BE()).toBe(7)
    expect(inFlight).toHaveLength(1000)
    for (const resolve of inFlight) resolve()
    inFlight = undefined
    await expectOthersServed()
  })

  test('with trailers, padding, priority or a split block gets its response', async () => {
    const half = Math.floor(callHeaders.length / 2)
    const { frame: next } = open(
      headersOn(
        1,
        4 | 8 | 32,
        Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 9]), callHeaders, Buffer.alloc(3)]),
      ),
      frame(
        { type: frameTypes.data, flags: 8 },
        1,
        Buffer.concat([Buffer.from([2]), emptyCall, Buffer.alloc(2)]),
      ),
      headersOn(1, 4 | 1, Buffer.from('\0\x01x\x01y')),
      headersOn(3, 0, callHeaders.subarray(0, half)),
      frame({ type: frameTypes.continuation, flags: 4 }, 3, callHeaders.subarray(half)),
      frame({ type: frameTypes.data, flags: 1 }, 3, emptyCall),
    )
    await next(frameTypes.data, 1)
    await next(frameTypes.data, 3)
  })

  test('in single bytes gets its response', async () => {
    const client = openFrames(server.port, Buffer.alloc(0))
    cleanups.push(() => client.socket.destroy())
    const bytes = Buffer.concat([opening, callOn(1)])
    for (const byte of bytes) client.socket.write(Buffer.from([byte]))
    await client.frame(frameTypes.data, 1)
  })

  test('whose window is 0 gets its response as the window opens', async () => {
    const {
      socket,
      frame: next,
      frames,
    } = open(frame({ type: frameTypes.settings }, 0, setting(4, 0)), callOn(1))
    await next(frameTypes.headers, 1)
    expect(frames.filter(({ type }) => type === frameTypes.data)).toEqual([])
    socket.write(frame({ type: frameTypes.windowUpdate }, 1, uint32(1)))
    expect((await next(frameTypes.data, 1)).payload).toHaveLength(1)
    socket.write(frame({ type: frameTypes.settings }, 0, setting(4, 1000)))
    await waitFor('the completion of its stream', () =>
      frames.some(({ type, flags }) => type === 1 && (flags & 1) === 1),
    )
  })

  test('is completed at its deadline', async () => {
    inFlight = []
    const timeout = Buffer.from('\0\x0cgrpc-timeout\x0350m')
    const { frame: next } = open(
      headersOn(1, 4, Buffer.concat([callHeaders, timeout])),
      frame({ type: frameTypes.data, flags: 1 }, 1, emptyCall),
    )
    const { payload, flags } = await next(frameTypes.headers, 1)
    expect([payload.toString('latin1'), flags]).toEqual([
      expect.stringContaining('grpc-status\x014'),
      5,
    ])
    for (const resolve of inFlight) resolve()
  })

  test('whose headers are too long is RESOURCE_EXHAUSTED', async () => {
    const long = Buffer.concat([
      Buffer.from('\0\x01x\x7f\xc9\x7d', 'latin1'),
      Buffer.alloc(16_200, 'y'),
    ])
    const { frame: next } = open(
      headersOn(1, 0, callHeaders),
      frame({ type: frameTypes.continuation, flags: 4 }, 1, long),
    )
    const { payload } = await next(frameTypes.headers, 1)
    expect(payload.toString('latin1')).toContain('grpc-status\x018')
  })
})

test('the listener does not read from a client that does not read', async () => {
  const calls = 150_000
  const client = open(frame({ type: frameTypes.windowUpdate }, 0, uint32(2 ** 30)))
  await client.frame(frameTypes.settings, 0)
  client.socket.pause()
  for (let at = 0; at < calls; at += 500) {
    client.socket.write(many(500, (i) => callOn(2 * (at + i) + 1)))
  }
  let served = -1
  await waitFor('the server to stop reading', () => {
    const before = served
    served = server.calls.length
    return served > 0 && served === before
  })
  expect(served).toBeLessThan(calls)
  expect(client.socket.writableLength).toBeGreaterThan(0)
  await expectOthersServed()
  client.socket.resume()
  await waitFor('all calls', () => server.calls.length === calls + 1)
}, 60_000)

test('the listener accepts calls after its first GOAWAY until its ping is acked', async () => {
  const graceful = await startTestServer()
  const client = openFrames(graceful.port, Buffer.concat([opening, callOn(1)]))
  cleanups.push(() => client.socket.destroy())
  await client.frame(frameTypes.data, 1)
  const closed = graceful.close()
  const first = await client.frame(frameTypes.goaway)
  expect(first.payload.readUInt32BE()).toBe(2 ** 31 - 1)
  client.socket.write(callOn(3))
  await client.frame(frameTypes.data, 3)
  const pings = client.frames.filter(({ type, flags }) => type === frameTypes.ping && flags === 0)
  client.socket.write(frame({ type: frameTypes.ping, flags: 1 }, 0, pings[0]?.payload))
  expect(await client.closed()).toBe(0)
  const last = client.frames.findLast(({ type }) => type === frameTypes.goaway)
  expect(last?.payload.readUInt32BE()).toBe(3)
  await closed
})
