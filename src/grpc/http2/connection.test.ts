// How a connection starts, shuts down and closes, and that it then holds no memory of the bounds.
// Without a socket, with a fake clock.
import { describe, expect, test } from '@jest/globals'
import { frame, headersOn, many, opening, uint32 } from '../../../test/kit/ratelimit/grpc-frames.ts'
import { openConnection, openPipe, settle } from '../../../test/kit/ratelimit/http2-connection.ts'
import type { CallStream } from './call-stream.ts'
import { errorCodes, frameTypes, MAX_STREAM_ID } from './frames.ts'

const [ACK, END_HEADERS, END_STREAM] = [1, 4, 1]
const PREFACE_BYTES = 24
const shutdownAck = frame({ type: frameTypes.ping, flags: ACK }, 0, Buffer.from('shutdown'))
const respond = (stream: CallStream) => {
  stream.respond(Buffer.alloc(0))
  stream.handlerDone()
}
const heldBy = ({ budgets }: ReturnType<typeof openConnection>) =>
  Object.values(budgets).reduce((sum, { held }) => sum + held, 0)

describe('a connection', () => {
  test('starts with the settings and the window of the server', async () => {
    const { frames } = openConnection()
    await settle()
    const sent = frames().map(({ type, payload }) => [type, payload.toString('hex')])
    expect(sent).toEqual([
      [frameTypes.settings, '0003000003e8' + '000600004000'],
      [frameTypes.windowUpdate, uint32(1024 * 1024 - 65_535).toString('hex')],
    ])
  })

  test('must start with SETTINGS, and not with an ack', async () => {
    const preface = opening.subarray(0, PREFACE_BYTES)
    const ack = frame({ type: frameTypes.settings, flags: ACK }, 0)
    for (const first of [ack, headersOn(1), frame({ type: 0xfe }, 0)]) {
      const { send, goaways, started } = openConnection()
      await send(preface, first, opening.subarray(PREFACE_BYTES), headersOn(1))
      expect([goaways(), started]).toEqual([[[0, errorCodes.protocol]], []])
    }
  })

  test('ignores PRIORITY, GOAWAY and frames of unknown types', async () => {
    const { send, frames, goaways, started } = openConnection()
    const ignored = [
      frame({ type: frameTypes.priority }, 1, Buffer.alloc(5)),
      frame({ type: frameTypes.goaway }, 0, Buffer.alloc(8)),
      frame({ type: 0xfe, flags: 0xff }, 7, Buffer.alloc(100)),
    ]
    await send(opening, ...ignored, headersOn(1))
    expect([goaways(), started.length]).toEqual([[], 1])
    expect(frames().filter(({ type }) => type === frameTypes.ping)).toEqual([])
  })

  test('handles no frame after a connection error', async () => {
    const { send, goaways, started, closes } = openConnection()
    await send(opening, headersOn(1), headersOn(2), headersOn(3))
    await send(headersOn(5))
    expect([goaways(), started.length, closes()]).toEqual([[[1, errorCodes.protocol]], 1, 0])
    expect(started[0]?.isClosed).toBe(true)
  })
})

describe('a graceful shutdown', () => {
  test('closes a connection without calls at the ack of its ping', async () => {
    const { connection, send, goaways, duplex } = openConnection()
    await send(opening)
    connection.startGracefulShutdown()
    await settle()
    expect(goaways()).toEqual([[MAX_STREAM_ID, errorCodes.noError]])
    expect(duplex.writableEnded).toBe(false)
    await send(shutdownAck)
    expect(goaways()[1]).toEqual([0, errorCodes.noError])
    expect(duplex.writableEnded).toBe(true)
  })

  test('completes the calls in flight, and rejects calls after the final GOAWAY', async () => {
    const { connection, send, goaways, resets, started, duplex } = openConnection()
    await send(opening, headersOn(1))
    connection.startGracefulShutdown()
    await send(headersOn(3, END_HEADERS | END_STREAM), shutdownAck, headersOn(5))
    expect([started.map(({ id }) => id), goaways()[1]]).toEqual([
      [1, 3],
      [3, errorCodes.noError],
    ])
    expect(resets()).toEqual([[5, errorCodes.refusedStream]])
    for (const stream of started) {
      expect(duplex.writableEnded).toBe(false)
      respond(stream)
    }
    expect(duplex.writableEnded).toBe(true)
    expect(goaways()).toHaveLength(2)
  })

  test('does nothing on a closed connection', async () => {
    const { connection, send, goaways, checkAt } = openConnection()
    await send(opening, headersOn(2))
    connection.startGracefulShutdown()
    await checkAt(900)
    expect(goaways()).toEqual([[0, errorCodes.protocol]])
  })
})

describe('a connection that is shed', () => {
  test('gets one GOAWAY, and closes its calls', async () => {
    const { connection, send, goaways, started, duplex } = openConnection()
    await send(opening, headersOn(1))
    for (let times = 0; times < 2; times += 1) connection.shed('no memory')
    await settle()
    expect(goaways()).toEqual([[1, errorCodes.enhanceYourCalm]])
    expect([started[0]?.isClosed, duplex.writableEnded, duplex.destroyed]).toEqual([
      ...[true, true],
      false,
    ])
  })

  test('is destroyed if its client does not read', async () => {
    const { connection, send, duplex, reads, budgets } = openConnection(undefined, openPipe(64))
    await send(opening)
    reads(false)
    await send(many(8, () => frame({ type: frameTypes.ping }, 0, Buffer.alloc(8))))
    await send(frame({ type: frameTypes.ping }, 0, Buffer.alloc(8)))
    expect(budgets.output.held).toBeGreaterThan(64)
    connection.shed('no memory')
    expect([duplex.destroyed, budgets.output.held]).toEqual([true, 0])
  })
})

describe('incomplete input', () => {
  test('of a field block is timed out after 5 s', async () => {
    const { send, goaways, checkAt } = openConnection()
    await send(opening, headersOn(1, 0))
    await checkAt(5000)
    expect(goaways()).toEqual([])
    await checkAt(5001)
    expect(goaways()).toEqual([[0, errorCodes.enhanceYourCalm]])
  })

  test('of a frame is timed out after 10 s', async () => {
    const { send, goaways, checkAt } = openConnection()
    await send(opening, headersOn(1).subarray(0, 12))
    await checkAt(10_000)
    expect(goaways()).toEqual([])
    await checkAt(10_001)
    expect(goaways()).toEqual([[0, errorCodes.enhanceYourCalm]])
  })

  test('that is complete within its time is not timed out', async () => {
    const { send, goaways, checkAt, started } = openConnection()
    await send(opening, headersOn(1).subarray(0, 12))
    await checkAt(9000)
    await send(headersOn(1).subarray(12))
    await checkAt(20_000)
    expect([goaways(), started.length]).toEqual([[], 1])
  })
})

describe('a closed connection holds nothing of', () => {
  const pending = (stream: CallStream) => {
    stream.handlerDone()
    stream.sendWindow = 0
    stream.write(Buffer.alloc(100))
  }
  const indexed = Buffer.from('\x40\x01x\x01y', 'latin1')
  const cases: Record<string, readonly [Buffer, ((stream: CallStream) => void)?]> = {
    'an incomplete frame': [headersOn(1).subarray(0, 12)],
    'an incomplete field block': [headersOn(1, 0)],
    'its HPACK table': [headersOn(1, END_HEADERS, indexed), respond],
    'its pending output': [headersOn(1), pending],
    'a call in its grace period': [headersOn(1), respond],
  }

  test.each(Object.entries(cases))('%s after it is shed or closed', async (_, [sent, start]) => {
    const shed = openConnection(start)
    await shed.send(opening, sent)
    expect(heldBy(shed)).toBeGreaterThan(0)
    shed.connection.shed('no memory')
    expect(heldBy(shed)).toBe(0)
    const closed = openConnection(start)
    await closed.send(opening, sent)
    closed.duplex.destroy(new Error('ECONNRESET'))
    await settle()
    closed.connection.runLater(() => undefined)
    expect([heldBy(closed), closed.closes()]).toEqual([0, 1])
  })

  test('its output that was not read', async () => {
    const full = openConnection(undefined, openPipe(64))
    await full.send(opening)
    full.reads(false)
    await full.send(many(8, () => frame({ type: frameTypes.ping }, 0, Buffer.alloc(8))))
    expect(full.budgets.output.held).toBeGreaterThan(64)
    full.duplex.destroy()
    await settle()
    expect(heldBy(full)).toBe(0)
  })

  test('its calls in flight, once their handlers are done', async () => {
    const { connection, send, budgets, closes, duplex, started } = openConnection()
    await send(opening, headersOn(1))
    connection.destroy()
    await settle()
    expect([duplex.destroyed, closes(), budgets.streams.held]).toEqual([true, 1, 1])
    for (const stream of started) stream.handlerDone()
    expect(budgets.streams.held).toBe(0)
  })
})

test('a call that cannot get a slot is reset, and may be retried', async () => {
  const { send, budgets, resets, goaways, started } = openConnection()
  budgets.streams.max = 1
  await send(opening, headersOn(1), headersOn(3))
  expect([started.length, resets(), goaways()]).toEqual([1, [[3, errorCodes.refusedStream]], []])
  budgets.streams.max = 2
  await send(headersOn(5))
  expect(started.map(({ id }) => id)).toEqual([1, 5])
})

test('work that a call defers runs in a later slice, and is dropped by the close', async () => {
  const done: number[] = []
  const { connection, send } = openConnection((stream) => {
    stream.runLater(() => done.push(stream.id))
  })
  await send(opening, headersOn(1))
  expect(done).toEqual([1])
  const closed = openConnection()
  await closed.send(opening, headersOn(1))
  closed.connection.runLater(() => done.push(2))
  closed.connection.shed('no memory')
  closed.connection.runLater(() => done.push(3))
  connection.runLater(() => done.push(4))
  await settle()
  expect(done).toEqual([1, 4])
})
