// The bounds on the memory and the time that all connections of a transport use together, observed
// by clients.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { ProcessBounds, processMax } from '../../../src/grpc/http2/process-bounds.ts'
import { createHttp2Transport } from '../../../src/grpc/http2-transport.ts'
import { admitAll } from '../../kit/ratelimit/grpc-client.ts'
import {
  callHeaders,
  callOn,
  emptyCall,
  frame,
  framesOf,
  headersOn,
  opening,
} from '../../kit/ratelimit/grpc-frames.ts'
import { waitFor } from '../../kit/wait-for.ts'

const cleanups: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp()
  jest.restoreAllMocks()
})

function openTransport(max: Partial<typeof processMax> = {}) {
  const shed: string[] = []
  const bounds = new ProcessBounds((kind) => shed.push(kind), { ...processMax, ...max })
  const ages = { ageMsMax: 0, graceMs: 0 }
  const callbacks = { onCall: () => undefined, onDefect: () => undefined }
  const transport = createHttp2Transport({ decide: admitAll, bounds, ...callbacks, ...ages })
  const open = (...frames: readonly Buffer[]) => {
    const written: Buffer[] = []
    const duplex = new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _, done) {
        written.push(chunk)
        done()
      },
    })
    cleanups.push(() => duplex.destroy())
    transport.serve(duplex)
    duplex.push(Buffer.concat([opening, ...frames]))
    const received = () => framesOf(Buffer.concat(written))
    return {
      duplex,
      received,
      /** The error of the first frame of this type. */
      async error(type: number, at: number) {
        await waitFor('the frame', () => received().some((one) => one.type === type))
        return received()
          .find((one) => one.type === type)
          ?.payload.readUInt32BE(at)
      },
      /** The headers and trailers that it received. */
      async headers() {
        await waitFor('trailers', () =>
          received().some(({ flags, type }) => type === 1 && flags === 5),
        )
        return received()
          .filter(({ type }) => type === 1)
          .map(({ payload }) => payload.toString('latin1'))
          .join()
      },
    }
  }
  return { bounds, open, shed, transport }
}

const unfinished = headersOn(1, 0, Buffer.alloc(16_000))
const unfinishedMessage = Buffer.concat([Buffer.from([0, 0, 0, 200, 0]), Buffer.alloc(16_000)])
const unfinishedCall = Buffer.concat([
  headersOn(1),
  frame({ type: frameTypes.data }, 1, unfinishedMessage),
])
const unlimited = Buffer.concat([callHeaders, Buffer.from('\0\x0cgrpc-timeout\x0999999999H')])

test('the listener rejects a call beyond its share of streams; a close frees them', async () => {
  const { open, bounds, shed } = openTransport({ streams: 8 })
  const client = open(headersOn(1), headersOn(3), headersOn(5), headersOn(7), headersOn(9))
  expect(await client.error(frameTypes.rstStream, 0)).toBe(7)
  expect([bounds.usage.streams.used, shed]).toEqual([4, ['streams']])
  client.duplex.destroy()
  await waitFor('all to be released', () => bounds.usage.streams.used === 0)
})

test('an unfinished header block beyond the share closes its connection', async () => {
  const { open, bounds } = openTransport({ headers: 40_000 })
  open(unfinished)
  expect(await open(unfinished).error(frameTypes.goaway, 4)).toBe(11)
  expect(bounds.usage.headers.used).toBe(16_000)
})

test('an unfinished message beyond the share aborts its call', async () => {
  const { open, bounds } = openTransport({ messages: 40_000 })
  open(unfinishedCall)
  expect(await open(unfinishedCall).headers()).toContain('grpc-status\x018')
  expect(bounds.usage.messages.used).toBe(16_384) // its buffer, a power of two
})

test('the listener closes the client that uses the most memory', async () => {
  const { open, bounds } = openTransport({ messages: 40_000 })
  const greedy = open(unfinishedCall)
  const small = Buffer.concat([Buffer.from([0, 0, 0, 200, 0]), Buffer.alloc(5000)])
  open(headersOn(1), frame({ type: frameTypes.data }, 1, small))
  expect(await greedy.error(frameTypes.goaway, 4)).toBe(11)
  expect(bounds.usage.messages.used).toBe(8192) // its buffer, a power of two
})

const waits: Record<string, { sent: Buffer; ms: number; type: number }> = {
  'an unfinished call': { sent: headersOn(1, 4, unlimited), ms: 10_500, type: 1 },
  'an unfinished header block': { sent: unfinished, ms: 5500, type: frameTypes.goaway },
  'an unfinished frame': {
    sent: headersOn(1).subarray(0, 20),
    ms: 10_500,
    type: frameTypes.goaway,
  },
}

test.each(Object.entries(waits))(
  'the listener aborts %s at its own deadline',
  async (_, { sent, ms, type }) => {
    const { open, bounds } = openTransport()
    const client = open(sent)
    const isAborted = () => client.received().some((one) => one.type === type)
    await waitFor('the settings', () => client.received().length > 0)
    await new Promise((resolve) => setImmediate(resolve))
    const now = performance.now.bind(performance)
    jest.spyOn(performance, 'now').mockImplementation(() => now() + ms)
    await waitFor('the abort', isAborted)
    const { streams, headers: blocks, input } = bounds.usage
    await waitFor('all to be released', () => streams.used + blocks.used + input.used === 0)
  },
)

const post = Buffer.from([0x83, 0x86])
const withLength = Buffer.concat([callHeaders, Buffer.from('\0\x0econtent-length\x017')])
const faultyCalls: Record<string, (stream: number) => Buffer> = {
  'are not gRPC': (stream) => {
    const fields = [post, Buffer.from('\x84\0\x0ccontent-type\x09text/html', 'latin1')]
    return headersOn(stream, 5, Buffer.concat(fields))
  },
  'have no path': (stream) => headersOn(stream, 5, post),
  'have no body, despite their content-length': (stream) => headersOn(stream, 5, withLength),
  'have a shorter body than their content-length': (stream) =>
    Buffer.concat([
      headersOn(stream, 4, withLength),
      frame({ type: frameTypes.data, flags: 1 }, stream, emptyCall.subarray(0, 6)),
    ]),
}

test.each(Object.entries(faultyCalls))('calls that %s spend the abuse budget', async (_, call) => {
  const { open } = openTransport()
  const { duplex, received } = open()
  const isClosing = () => received().some(({ type }) => type === frameTypes.goaway)
  let stream = 1
  for (let round = 0; round < 300 && !isClosing(); round += 1) {
    const each = Array.from({ length: 100 }, () => call((stream += 2)))
    duplex.push(Buffer.concat(each))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await waitFor('GOAWAY', isClosing)
  expect(
    received()
      .find(({ type }) => type === frameTypes.goaway)
      ?.payload.readUInt32BE(4),
  ).toBe(11)
  const next = open(callOn(1))
  expect(await next.headers()).toBeDefined()
})

test('a new client gets the connection of a shed one that does not close it', async () => {
  const { transport, bounds, shed } = openTransport({ connections: 40 })
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    transport.serve(socket)
    cleanups.push(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  cleanups.push(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const openFrom = (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
    const received: Buffer[] = []
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    socket.on('error', () => undefined).write(opening)
    cleanups.push(() => socket.destroy())
    return { socket, frames: () => framesOf(Buffer.concat(received)) }
  }
  const opened = [20, 10, 5, 2, 1, 1].flatMap((count, at) =>
    Array.from({ length: count }, () => openFrom(`127.0.0.${2 + at}`)),
  )
  await waitFor('the connections', () => bounds.usage.connections.used === 39)
  for (const address of ['127.0.0.20', '127.0.0.21', '127.0.0.22']) {
    const { socket, frames } = openFrom(address)
    socket.write(callOn(1))
    await waitFor('the response', () => frames().some(({ type }) => type === frameTypes.data))
  }
  expect(shed).toEqual(['connections', 'connections', 'connections'])
  const goaways = opened.filter(({ frames }) =>
    frames().some(({ type }) => type === frameTypes.goaway),
  )
  expect(goaways).toHaveLength(3)
  expect(sockets.filter(({ destroyed }) => destroyed)).toHaveLength(3)
  expect(bounds.usage.connections.used).toBe(39)
})
