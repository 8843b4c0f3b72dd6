// The bounds on the memory and the time that all connections of a transport use together, as
// clients observe them.
import { Duplex } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { ProcessBounds, processMax } from '../../../src/grpc/http2/process-bounds.ts'
import { createHttp2Transport } from '../../../src/grpc/http2-transport.ts'
import { passAll } from '../../kit/ratelimit/grpc-client.ts'
import { callHeaders, callOn, frame, framesOf, opening } from '../../kit/ratelimit/grpc-frames.ts'
import { waitFor } from '../../kit/wait-for.ts'

const cleanups: (() => unknown)[] = []
afterEach(() => {
  for (const end of cleanups.splice(0)) end()
  jest.restoreAllMocks()
})

function openTransport(max: Partial<typeof processMax> = {}) {
  const shed: string[] = []
  const bounds = new ProcessBounds((kind) => shed.push(kind), { ...processMax, ...max })
  const ages = { ageMsMax: 0, graceMs: 0 }
  const callbacks = { onCall: () => undefined, onDefect: () => undefined }
  const transport = createHttp2Transport({ decide: passAll, bounds, ...callbacks, ...ages })
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
      async text() {
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
  return { bounds, open, shed }
}

const headers = (stream: number, flags = 4, block = callHeaders) =>
  frame({ type: frameTypes.headers, flags }, stream, block)
const unfinished = headers(1, 0, Buffer.alloc(16_000))
const unfinishedMessage = Buffer.concat([Buffer.from([0, 0, 0, 200, 0]), Buffer.alloc(16_000)])
const unfinishedCall = Buffer.concat([
  headers(1),
  frame({ type: frameTypes.data }, 1, unfinishedMessage),
])
const unlimited = Buffer.concat([callHeaders, Buffer.from('\0\x0cgrpc-timeout\x0999999999H')])

test('a call beyond the share of streams is refused; a close releases the streams', async () => {
  const { open, bounds, shed } = openTransport({ streams: 8 })
  const client = open(headers(1), headers(3), headers(5), headers(7), headers(9))
  expect(await client.error(frameTypes.rstStream, 0)).toBe(7)
  expect([bounds.sums.streams.used, shed]).toEqual([4, ['streams']])
  client.duplex.destroy()
  await waitFor('all to be released', () => bounds.sums.streams.used === 0)
})

test('an unfinished header block beyond the share closes its connection', async () => {
  const { open, bounds } = openTransport({ headers: 40_000 })
  open(unfinished)
  expect(await open(unfinished).error(frameTypes.goAway, 4)).toBe(11)
  expect(bounds.sums.headers.used).toBe(16_000)
})

test('an unfinished message beyond the share aborts its call', async () => {
  const { open, bounds } = openTransport({ messages: 40_000 })
  open(unfinishedCall)
  expect(await open(unfinishedCall).text()).toContain('grpc-status\x018')
  expect(bounds.sums.messages.used).toBe(16_384) // its buffer, a power of two
})

test('the client that uses the least is served; the one that uses the most is closed', async () => {
  const { open, bounds } = openTransport({ messages: 40_000 })
  const greedy = open(unfinishedCall)
  const small = Buffer.concat([Buffer.from([0, 0, 0, 200, 0]), Buffer.alloc(5000)])
  open(headers(1), frame({ type: frameTypes.data }, 1, small))
  expect(await greedy.error(frameTypes.goAway, 4)).toBe(11)
  expect(bounds.sums.messages.used).toBe(8192) // its buffer, a power of two
})

const waits: Record<string, { sent: Buffer; ms: number; type: number }> = {
  'an unfinished call': { sent: headers(1, 4, unlimited), ms: 10_500, type: 1 },
  'an unfinished header block': { sent: unfinished, ms: 5500, type: frameTypes.goAway },
  'an unfinished frame': {
    sent: headers(1).subarray(0, 20),
    ms: 10_500,
    type: frameTypes.goAway,
  },
}

test.each(Object.entries(waits))(
  '%s is aborted at our own deadline',
  async (_, { sent, ms, type }) => {
    const { open, bounds } = openTransport()
    const client = open(sent)
    const ended = () => client.received().some((one) => one.type === type)
    await waitFor('the settings', () => client.received().length > 0)
    await new Promise((resolve) => setImmediate(resolve))
    const now = performance.now.bind(performance)
    jest.spyOn(performance, 'now').mockImplementation(() => now() + ms)
    await waitFor('the abort', ended)
    const { streams, headers: blocks, input } = bounds.sums
    await waitFor('all to be released', () => streams.used + blocks.used + input.used === 0)
  },
)

test('errors do not refill the abuse budget', async () => {
  const other = Buffer.concat([
    Buffer.from([0x83, 0x86, 0x84, 0, 12]),
    Buffer.from('content-type\x09text/html'),
  ])
  const { open } = openTransport()
  const { duplex, received } = open()
  const isClosing = () => received().some(({ type }) => type === frameTypes.goAway)
  let stream = 1
  for (let round = 0; round < 300 && !isClosing(); round += 1) {
    const each = Array.from({ length: 100 }, () => headers((stream += 2), 5, other))
    duplex.push(Buffer.concat(each))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await waitFor('the abort', isClosing)
  expect(
    received()
      .find(({ type }) => type === frameTypes.goAway)
      ?.payload.readUInt32BE(4),
  ).toBe(11)
  const next = open(callOn(1))
  expect(await next.text()).toBeDefined()
})
