// A connection keeps in memory only bytes that a bound of the process counts, and little more: no
// received chunks, and no slices of Node.js's buffer pool. On connections without a socket.
import { Duplex } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { ProcessBounds } from '../../../src/grpc/http2/process-bounds.ts'
import { createHttp2Transport } from '../../../src/grpc/http2-transport.ts'
import { releaseStartMemory } from '../../../src/process/release-start-memory.ts'
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
} from '../../kit/ratelimit/grpc-frames.ts'
import { waitFor } from '../../kit/wait-for.ts'

const cleanups: (() => unknown)[] = []
const defects: unknown[] = []
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp()
  expect(defects.splice(0)).toEqual([])
})

/** A connection; without `reads`, its client reads nothing until `resume`. */
function openConnection({ reads = true } = {}) {
  const written: Buffer[] = []
  const pending: (() => void)[] = []
  let isReading = reads
  const duplex = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      written.push(chunk)
      if (isReading) done()
      else pending.push(done)
    },
  })
  cleanups.push(() => duplex.destroy())
  const onDefect = (error: unknown) => defects.push(error)
  const bounds = new ProcessBounds(() => undefined)
  const deps = { decide: admitAll, onCall: () => undefined, onDefect, bounds }
  createHttp2Transport({ ...deps, ageMsMax: 0, graceMs: 0 }).serve(duplex)
  return {
    ...{ duplex, bounds },
    received: (type: number) => framesOf(Buffer.concat(written)).some((one) => one.type === type),
    pings: () => framesOf(Buffer.concat(written)).filter((one) => one.type === frameTypes.ping),
    resume: () => {
      isReading = true
      for (const done of pending.splice(0)) done()
    },
  }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Passes a chunk with its own memory, as a socket does; returns a reference to that memory. */
function push(duplex: Duplex, bytes: Buffer): WeakRef<ArrayBufferLike> {
  const chunk = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(chunk)
  duplex.push(chunk)
  return new WeakRef(chunk.buffer)
}

const unknown = frame({ type: 0xfe }, 0, Buffer.alloc(16_000))
const data = (bytes: Buffer, flags = 0) => frame({ type: frameTypes.data, flags }, 1, bytes)
const noPath = Buffer.from([0x83, 0x86])
const invalidBlock = Buffer.from([0x83, 0xff, 0xff, 0xff, 0xff, 0xff])
const incompleteMessage = Buffer.concat([Buffer.from([0, 0, 0, 200, 0]), Buffer.alloc(1000)])

/** The last frame of each chunk, and the bytes of it that a bound counts. */
const chunks: Record<string, readonly [last: Buffer, counted: number]> = {
  'a frame of an unknown type': [unknown, 0],
  'the headers of a call': [headersOn(1), 0],
  'the headers of a malformed call': [headersOn(1, 5, noPath), 0],
  'a complete call': [callOn(1), 0],
  trailers: [Buffer.concat([headersOn(1), headersOn(1, 5, Buffer.from('\0\x01x\x01y'))]), 0],
  'an incomplete header block': [headersOn(1, 0), callHeaders.length],
  'an incomplete frame': [headersOn(1).subarray(0, 20), 20],
  'an incomplete message': [Buffer.concat([headersOn(1), data(incompleteMessage)]), 1024],
  'data after the response': [Buffer.concat([callOn(1), data(emptyCall)]), 0],
}

test.each(Object.entries(chunks))(
  'a chunk that completes with %s is collected while the connection is idle',
  async (_, [last, counted]) => {
    const { duplex, received, bounds } = openConnection()
    duplex.push(opening)
    await waitFor('the ack of the settings', () => received(frameTypes.settings))
    const chunk = push(duplex, Buffer.concat([unknown, unknown, unknown, last]))
    await waitFor('the collection of the chunk', () => {
      releaseStartMemory()
      return chunk.deref() === undefined
    })
    const { headers, input, messages } = bounds.usage
    expect(headers.used + input.used + messages.used).toBe(counted)
    expect([duplex.destroyed, received(frameTypes.goaway)]).toEqual([false, false])
  },
)

test('a chunk with a connection error is collected', async () => {
  const { duplex, received } = openConnection()
  duplex.push(opening)
  const chunk = push(duplex, Buffer.concat([unknown, headersOn(1, 4, invalidBlock)]))
  await waitFor('GOAWAY', () => received(frameTypes.goaway))
  await waitFor('the collection of the chunk', () => {
    releaseStartMemory()
    return chunk.deref() === undefined
  })
})

const ping = frame({ type: frameTypes.ping }, 0, Buffer.alloc(8))
const continuation = frame({ type: frameTypes.continuation }, 1, callHeaders)
const CONNECTIONS = 200
/** Less than the deadline of an incomplete frame or header block, which releases its memory. */
const COLLECTED_MS_MAX = 4000
const POOL_BYTES = Buffer.poolSize

/** Each case: the chunks that leave a few bytes in memory. */
const remains: Record<string, { readonly sent: readonly Buffer[]; readonly reads?: boolean }> = {
  'an incomplete frame': { sent: [headersOn(1).subarray(0, 20)] },
  'an incomplete frame in two chunks': {
    sent: [headersOn(1).subarray(0, 20), headersOn(1).subarray(20, 40)],
  },
  'an incomplete header block': { sent: [headersOn(1, 0), continuation] },
  'an incomplete message': { sent: [Buffer.concat([headersOn(1), data(incompleteMessage)])] },
  'a response that waits for its window': {
    sent: [frame({ type: frameTypes.settings }, 0, Buffer.from([0, 4, 0, 0, 0, 0])), callOn(1)],
  },
  'output that is not read': { sent: [ping, ping], reads: false },
}

/** Uses up a slice of the buffer pool, as other connections do. */
function usePool(): void {
  for (let bytes = 0; bytes <= POOL_BYTES; bytes += POOL_BYTES / 4) {
    Buffer.allocUnsafe(POOL_BYTES / 4)
  }
}

function arrayBufferBytes(): number {
  releaseStartMemory()
  return process.memoryUsage().arrayBuffers
}

test.each(Object.entries(remains))(
  'a connection with %s keeps no slice of the buffer pool',
  async (_, { sent, reads = true }) => {
    const opened = Array.from({ length: CONNECTIONS }, () => openConnection({ reads }))
    for (const { duplex } of opened) duplex.push(opening)
    await nextTurn()
    await nextTurn()
    const before = arrayBufferBytes()
    for (const { duplex } of opened) {
      for (const chunk of sent) {
        push(duplex, chunk)
        await nextTurn()
        await nextTurn()
        usePool()
      }
    }
    const added = () => (arrayBufferBytes() - before) / CONNECTIONS
    expect(opened.some(({ received }) => received(frameTypes.goaway))).toBe(false)
    await waitFor('the collection', () => added() < POOL_BYTES / 8, COLLECTED_MS_MAX)
  },
)

test('output that is not read counts even if it does not fill the socket buffer', async () => {
  const { duplex, bounds, resume } = openConnection({ reads: false })
  duplex.push(Buffer.concat([opening, many(3000, () => ping)]))
  await waitFor('the count of the acks', () => bounds.usage.output.used >= 3000 * ping.length)
  expect(duplex.writableNeedDrain).toBe(false)
  resume()
  await waitFor('their release', () => bounds.usage.output.used === 0)
})

test('frames are collected, not written one by one, while a client does not read', async () => {
  const { duplex, pings, resume } = openConnection({ reads: false })
  const write = jest.spyOn(duplex, 'write')
  duplex.push(opening)
  for (let i = 0; i < 100; i += 1) {
    duplex.push(ping)
    await nextTurn()
  }
  await nextTurn()
  expect(write.mock.calls.length).toBeLessThanOrEqual(2)
  resume()
  await waitFor('the acks', () => pings().length === 100)
  expect(write.mock.calls.length).toBeLessThanOrEqual(3)
})
