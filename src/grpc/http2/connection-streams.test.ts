// The frames of streams on one connection: which are delivered, dropped, or reset their stream or
// the connection (RFC 9113 §5.1). Without a socket.
import { describe, expect, jest, test } from '@jest/globals'
import {
  callHeaders,
  frame,
  headersOn,
  many,
  opening,
  uint32,
} from '../../../test/kit/ratelimit/grpc-frames.ts'
import { openConnection } from '../../../test/kit/ratelimit/http2-connection.ts'
import type { CallStream } from './call-stream.ts'
import { errorCodes, frameTypes } from './frames.ts'

const [END_STREAM, END_HEADERS] = [1, 4]
const data = (stream: number, bytes: number, flags = 0) =>
  frame({ type: frameTypes.data, flags }, stream, Buffer.alloc(bytes))
const resetOf = (stream: number) => frame({ type: frameTypes.rstStream }, stream, uint32(8))
const field = Buffer.from('\0\x01x\x01y')
const trailers = (stream: number, flags = END_HEADERS | END_STREAM, block = field) =>
  headersOn(stream, flags, block)
const withLength = (length: number) =>
  Buffer.concat([callHeaders, Buffer.from(`\0\x0econtent-length\x01${length}`)])

/** Records what each stream receives. */
function openRecorded() {
  const received: string[] = []
  const opened = openConnection((stream, fields) => {
    received.push(`${stream.id} start ${fields?.length}`)
    stream.listener = {
      receive: (bytes, endStream) => received.push(`${stream.id} ${bytes.length} ${endStream}`),
      closed: () => received.push(`${stream.id} closed`),
    }
  })
  return { ...opened, received }
}

const respond = (stream: CallStream) => {
  stream.respond(Buffer.alloc(0))
  stream.handlerDone()
}

describe('a request', () => {
  test('without a body is complete with its headers', async () => {
    const { send, received, started } = openRecorded()
    await send(opening, headersOn(1, END_HEADERS | END_STREAM))
    expect([received, started[0]?.isRemoteClosed]).toEqual([['1 start 4', '1 0 true'], true])
  })

  test('with a body is complete with END_STREAM', async () => {
    const { send, received, started } = openRecorded()
    await send(opening, headersOn(1), data(1, 5))
    expect([received, started[0]?.isRemoteClosed]).toEqual([['1 start 4', '1 5 false'], false])
    await send(data(1, 6, END_STREAM))
    expect([received.at(-1), started[0]?.isRemoteClosed]).toEqual(['1 6 true', true])
  })

  test('is complete with its trailers', async () => {
    const { send, received, started, resets } = openRecorded()
    await send(opening, headersOn(1), data(1, 5), trailers(1))
    expect([received.at(-1), started[0]?.isRemoteClosed, resets()]).toEqual(['1 0 true', true, []])
  })

  test('is complete with trailers that are too large, which are ignored', async () => {
    const { send, received, resets, goaways } = openRecorded()
    const large = Buffer.alloc(400, 0x82)
    await send(opening, headersOn(1), trailers(1, END_HEADERS | END_STREAM, large))
    expect([received.at(-1), resets(), goaways()]).toEqual(['1 0 true', [], []])
  })

  test('whose headers are too large is started without fields', async () => {
    const { send, received, goaways } = openRecorded()
    await send(opening, headersOn(1, END_HEADERS, Buffer.alloc(400, 0x82)))
    expect([received, goaways()]).toEqual([['1 start undefined'], []])
  })

  test('with content-length and no body is reset, and its slot is free', async () => {
    const { send, received, resets, budgets } = openRecorded()
    await send(opening, headersOn(1, END_HEADERS | END_STREAM, withLength(5)))
    expect([received, resets()]).toEqual([[], [[1, errorCodes.protocol]]])
    expect(budgets.streams.held).toBe(0)
  })

  test('with more or less data than its content-length is reset without a delivery', async () => {
    const { send, received, resets } = openRecorded()
    await send(opening, ...[1, 3].map((id) => headersOn(id, END_HEADERS, withLength(5))))
    await send(data(1, 6), data(3, 4, END_STREAM))
    expect(received.slice(2)).toEqual(['1 closed', '3 closed'])
    expect(resets()).toEqual([1, 3].map((id) => [id, errorCodes.protocol]))
  })
})

describe('an open stream is reset by', () => {
  const headersOfRequest = headersOn(1, END_HEADERS | END_STREAM)
  const frames: Record<string, readonly [sent: Buffer, code: number]> = {
    'trailers without END_STREAM': [trailers(1, END_HEADERS), errorCodes.protocol],
    'trailers of which one has an invalid name': [
      trailers(1, END_HEADERS | END_STREAM, Buffer.from('\0\x01x\x01y\0\x01X\x01y')),
      errorCodes.protocol,
    ],
    'the headers of another request': [headersOfRequest, errorCodes.protocol],
    'data after END_STREAM': [
      Buffer.concat([data(1, 1, END_STREAM), data(1, 1)]),
      errorCodes.streamClosed,
    ],
    'trailers after END_STREAM': [
      Buffer.concat([data(1, 1, END_STREAM), trailers(1)]),
      errorCodes.streamClosed,
    ],
  }
  test.each(Object.entries(frames))('%s', async (_, [sent, code]) => {
    const { send, received, resets, goaways } = openRecorded()
    await send(opening, headersOn(1), sent)
    expect([resets(), received.at(-1), goaways()]).toEqual([[[1, code]], '1 closed', []])
  })
})

describe('after the response, while the request is incomplete,', () => {
  test('data is dropped until END_STREAM; data after it resets the stream once', async () => {
    const { send, resets, budgets } = openConnection(respond)
    await send(opening, headersOn(1), data(1, 100))
    expect([resets(), budgets.streams.held]).toEqual([[], 1])
    await send(data(1, 100, END_STREAM))
    expect([resets(), budgets.streams.held]).toEqual([[], 0])
    await send(data(1, 100), data(1, 100))
    expect(resets()).toEqual([[1, errorCodes.streamClosed]])
  })

  test('trailers complete it; trailers after them reset the stream', async () => {
    const { send, resets, budgets } = openConnection(respond)
    await send(opening, headersOn(1), trailers(1))
    expect([resets(), budgets.streams.held]).toEqual([[], 0])
    await send(trailers(1), trailers(1))
    expect(resets()).toEqual([[1, errorCodes.streamClosed]])
  })

  test('trailers without END_STREAM reset the stream', async () => {
    const { send, resets, budgets } = openConnection(respond)
    await send(opening, headersOn(1), trailers(1, END_HEADERS))
    expect([resets(), budgets.streams.held]).toEqual([[[1, errorCodes.protocol]], 0])
  })

  test('the headers of another request close the connection', async () => {
    const { send, goaways } = openConnection(respond)
    await send(opening, headersOn(1), headersOn(1))
    expect(goaways()).toEqual([[1, errorCodes.protocol]])
  })

  test('a reset completes it', async () => {
    const { send, resets, budgets, checkAt } = openConnection(respond)
    await send(opening, headersOn(1), resetOf(1))
    expect(budgets.streams.held).toBe(0)
    await checkAt(5000)
    expect(resets()).toEqual([])
  })

  test('a complete request has no grace period', async () => {
    const { send, budgets, checkAt, resets } = openConnection(respond)
    await send(opening, headersOn(1, END_HEADERS | END_STREAM))
    expect(budgets.streams.held).toBe(0)
    await checkAt(5000)
    expect(resets()).toEqual([])
  })
})

describe('the receive window of a stream', () => {
  const listen = (stream: CallStream) => {
    stream.listener = { receive: () => undefined, closed: () => undefined }
  }
  const listenAndWrite = (stream: CallStream) => {
    listen(stream)
    stream.sendWindow = 0
    stream.write(Buffer.alloc(1))
  }
  const KIB_16 = many(4, () => data(1, 16_383))

  test('is restored while no output is pending', async () => {
    const { send, frames, started } = openConnection(listen)
    await send(opening, headersOn(1), data(1, 16_384), data(1, 16_383))
    const updates = () => frames().filter(({ type, stream }) => type === 8 && stream === 1)
    expect(updates()).toEqual([])
    await send(data(1, 1))
    expect(updates().map(({ payload }) => payload.readUInt32BE())).toEqual([32_768])
    expect(started[0]?.bytesReceived).toBe(0)
  })

  test('is not exceeded by 65,535 bytes, with padding', async () => {
    const { send, resets, frames } = openConnection(listenAndWrite)
    const padded = frame({ type: frameTypes.data, flags: 8 }, 1, Buffer.from([2, 0, 0]))
    await send(opening, headersOn(1), KIB_16, padded)
    expect(resets()).toEqual([])
    expect(frames().filter(({ type, stream }) => type === 8 && stream === 1)).toEqual([])
    await send(data(1, 0))
    expect(resets()).toEqual([])
    await send(data(1, 1))
    expect(resets()).toEqual([[1, errorCodes.flowControl]])
  })
})

describe('a defect', () => {
  const fails = () => {
    throw new Error('a defect')
  }

  test('at the start of a call resets it and frees its slot', async () => {
    const { send, resets, defects, budgets, goaways } = openConnection(fails)
    await send(opening, headersOn(1))
    expect([resets(), budgets.streams.held, goaways()]).toEqual([[[1, errorCodes.internal]], 0, []])
    expect(defects).toHaveLength(1)
  })

  test('that is not of one call closes the connection', async () => {
    const { send, started, goaways, defects } = openConnection()
    await send(opening, headersOn(1))
    const [stream] = started
    if (stream === undefined) throw new Error('no call was started')
    const closed = jest.fn()
    stream.listener = { receive: () => undefined, drained: fails, closed }
    stream.sendWindow = 0
    stream.write(Buffer.alloc(1))
    await send(frame({ type: frameTypes.windowUpdate }, 1, uint32(100)))
    expect([goaways(), defects]).toEqual([[[1, errorCodes.internal]], [new Error('a defect')]])
    expect(closed).toHaveBeenCalledTimes(1)
  })

  test('a protocol error is not', async () => {
    const { send, goaways, defects } = openConnection()
    await send(opening, headersOn(2))
    expect([goaways(), defects]).toEqual([[[0, errorCodes.protocol]], []])
  })
})
