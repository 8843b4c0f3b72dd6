// Which frames spend the abuse budget of a connection, and how much. The clock stands still, so
// that the budget is not refilled.
import { describe, expect, test } from '@jest/globals'
import { frame, headersOn, many, opening, uint32 } from '../../../test/kit/ratelimit/grpc-frames.ts'
import { openConnection, settle } from '../../../test/kit/ratelimit/http2-connection.ts'
import type { CallStream } from './call-stream.ts'
import { errorCodes, frameTypes } from './frames.ts'

const BUDGET = 10_000
const SETTINGS_COST = 1
const [END_STREAM, END_HEADERS, PADDED] = [1, 4, 8]
const ping = frame({ type: frameTypes.ping }, 0, Buffer.alloc(8))
const data = (stream: number, bytes: number, flags = 0) =>
  frame({ type: frameTypes.data, flags }, stream, Buffer.alloc(bytes))
const resetOf = (stream: number) => frame({ type: frameTypes.rstStream }, stream, uint32(8))
const CLOSED = expect.arrayContaining([[expect.any(Number), errorCodes.enhanceYourCalm]])

type Start = (stream: CallStream) => void
const keep: Start = () => undefined
const listen: Start = (stream) => {
  stream.listener = { receive: () => undefined, closed: () => undefined }
}
const rejectInternal: Start = (stream) => {
  stream.reject({ code: 'INTERNAL', details: '' })
  stream.handlerDone()
}
const respond: Start = (stream) => {
  stream.respond(Buffer.alloc(0))
  stream.handlerDone()
}
const notFound: Start = (stream) => {
  stream.rejectHttp(404)
  stream.handlerDone()
}
const done: Start = (stream) => {
  stream.handlerDone()
}
const fails: Start = () => {
  throw new Error('a defect')
}

/** Verifies what these frames spend. */
async function expectCost(cost: number, start: Start, ...frames: readonly Buffer[]) {
  const { connection, send, goaways } = openConnection(start)
  await send(opening, ...frames)
  connection.spend(BUDGET - SETTINGS_COST - cost)
  await settle()
  expect(goaways()).toEqual([])
  connection.spend(1)
  await settle()
  expect(goaways()).toEqual(CLOSED)
}

const complete = (stream: number) => headersOn(stream, END_HEADERS | END_STREAM)
const trailers = headersOn(1, END_HEADERS | END_STREAM, Buffer.from('\0\x01x\x01y'))
const padded = frame({ type: frameTypes.data, flags: PADDED }, 1, Buffer.alloc(65, 1))

const costs: Record<string, readonly [cost: number, start: Start, ...frames: Buffer[]]> = {
  'no frame': [0, keep],
  'a control frame': [3, keep, ping, ping, frame({ type: 0xfe }, 0)],
  'WINDOW_UPDATE and PRIORITY': [
    ...([2, keep] as const),
    frame({ type: frameTypes.windowUpdate }, 0, uint32(1)),
    frame({ type: frameTypes.priority }, 1, Buffer.alloc(5)),
  ],
  'a call in progress': [0, listen, headersOn(1), data(1, 64)],
  'data of 63 bytes': [1, listen, headersOn(1), data(1, 63)],
  'data of 63 bytes and padding': [1, listen, headersOn(1), padded],
  'the last data of a call': [0, listen, headersOn(1), data(1, 0, END_STREAM)],
  'small data after the response': [1, rejectInternal, headersOn(1), data(1, 63)],
  'data of a closed stream': [2, rejectInternal, complete(1), data(1, 100), data(1, 100)],
  'trailers of a closed stream': [1, rejectInternal, complete(1), trailers],
  'the reset of a call in progress': [0, keep, headersOn(1), resetOf(1)],
  'the reset of a completed call': [1, rejectInternal, headersOn(1), resetOf(1)],
  'the reset of a call whose handler is done': [1, done, headersOn(1), resetOf(1)],
  'a reset by the server': [1, listen, complete(1), data(1, 64)],
  'a defect of the server': [0, fails, headersOn(1), headersOn(3)],
  'a rejected call': [2, notFound, headersOn(1), headersOn(3)],
  'two successful calls after 10 PINGs': [
    ...([10 - 2 * 3, respond] as const),
    ...[many(10, () => ping), headersOn(1), headersOn(3)],
  ],
}

test.each(Object.entries(costs))('%s', async (_, [cost, start, ...frames]) => {
  await expectCost(cost, start, ...frames)
})

test('a call without a free slot', async () => {
  const calls = many(1002, (i) => headersOn(2 * i + 1))
  await expectCost(2, keep, calls)
})

describe('a field block spends 1 per', () => {
  const block = (bytes: number) => headersOn(1, END_HEADERS | END_STREAM, Buffer.alloc(bytes, 0x82))
  const literal = (bytes: number) => {
    const name = Buffer.from('\0\x01x\x7f', 'latin1')
    const length = bytes - name.length - 2 - 127
    const prefix = Buffer.from([(length & 127) | 128, length >> 7])
    const value = Buffer.alloc(127 + length, 'y')
    return headersOn(1, END_HEADERS | END_STREAM, Buffer.concat([name, prefix, value]))
  }

  test('64 fields', async () => {
    // Each field has one byte.
    await expectCost(0, rejectInternal, block(60))
    await expectCost(1, rejectInternal, block(61))
    await expectCost(10, rejectInternal, block(640))
  })

  test('1 KiB', async () => {
    await expectCost(0, rejectInternal, literal(1000))
    await expectCost(1, rejectInternal, literal(1024))
    await expectCost(3, rejectInternal, literal(3 * 1024))
  })
})

test('the budget is refilled when frames are read and when deadlines are checked', async () => {
  const { send, goaways, checkAt, clock, connection } = openConnection()
  await send(
    opening,
    many(BUDGET - SETTINGS_COST, () => ping),
  )
  clock.ms += 1000
  await send(many(1000, () => ping))
  await checkAt(2000)
  connection.spend(1000)
  expect(goaways()).toEqual([])
  await send(ping)
  expect(goaways()).toEqual(CLOSED)
})

test('a call that spends the rest of the budget closes the connection', async () => {
  const { send, goaways, connection } = openConnection()
  await send(opening)
  connection.spend(BUDGET - SETTINGS_COST)
  await send(headersOn(1))
  expect(goaways()).toEqual([])
  connection.spend(1)
  await send()
  expect(goaways()).toEqual([[1, errorCodes.enhanceYourCalm]])
})
