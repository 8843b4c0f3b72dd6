// PING, SETTINGS and WINDOW_UPDATE: their effects on a connection and its streams.
import { describe, expect, test } from '@jest/globals'
import { frame, headersOn, opening, uint32 } from '../../../test/kit/ratelimit/grpc-frames.ts'
import { openConnection, openPipe, settle } from '../../../test/kit/ratelimit/http2-connection.ts'
import type { CallStream } from './call-stream.ts'
import { errorCodes, frameTypes, MAX_WINDOW_SIZE, settingNames } from './frames.ts'

const ACK = 1
const windowUpdate = (stream: number, more: number) =>
  frame({ type: frameTypes.windowUpdate }, stream, uint32(more))
const settings = (...values: readonly (readonly [name: number, value: number])[]) =>
  frame(
    { type: frameTypes.settings },
    0,
    Buffer.concat(values.flatMap(([name, value]) => [Buffer.from([0, name]), uint32(value)])),
  )
const initialWindow = (bytes: number) => settings([settingNames.initialWindowSize, bytes])
const ping = (flags: number, payload: string) =>
  frame({ type: frameTypes.ping, flags }, 0, Buffer.from(payload))

type Opened = ReturnType<typeof openConnection>
const of = ({ frames }: Opened, type: number) => frames().filter((one) => one.type === type)
const bytesOf = (opened: Opened, stream: number) =>
  of(opened, frameTypes.data)
    .filter((one) => one.stream === stream)
    .reduce((bytes, { payload }) => bytes + payload.length, 0)

test('a PING is acknowledged with its payload; an ack is not', async () => {
  const opened = openConnection()
  await opened.send(opening, ping(0, '12345678'), ping(ACK, 'abcdefgh'))
  const pings = of(opened, frameTypes.ping)
  expect(pings.map(({ flags, payload }) => [flags, payload.toString()])).toEqual([
    [ACK, '12345678'],
  ])
})

describe('SETTINGS', () => {
  test('are acknowledged; an ack is not', async () => {
    const opened = openConnection()
    const acks = () => of(opened, frameTypes.settings).filter(({ flags }) => flags === ACK).length
    await opened.send(opening)
    expect(acks()).toBe(1)
    await opened.send(settings([99, 1]), frame({ type: frameTypes.settings, flags: ACK }, 0))
    expect([acks(), opened.goaways()]).toEqual([2, []])
  })

  test('change the window of open streams, and set that of later ones', async () => {
    const { send, started, goaways } = openConnection()
    const windows = () => started.map(({ sendWindow }) => sendWindow)
    await send(opening, headersOn(1))
    await send(initialWindow(1000))
    expect(windows()).toEqual([1000])
    await send(windowUpdate(1, 5), initialWindow(300), headersOn(3))
    expect(windows()).toEqual([305, 300])
    await send(settings([99, 1]), headersOn(5))
    expect(windows()).toEqual([305, 300, 300])
    await send(settings([4, 70], [4, 80], [1, 4096], [99, 1]), headersOn(7))
    expect([windows(), goaways()]).toEqual([[85, 80, 80, 80], []])
  })

  test('with a window that exceeds 2^31 - 1 in an open stream close the connection', async () => {
    const exact = openConnection()
    await exact.send(opening, headersOn(1), windowUpdate(1, 5), initialWindow(MAX_WINDOW_SIZE - 5))
    expect([exact.goaways(), exact.started[0]?.sendWindow]).toEqual([[], MAX_WINDOW_SIZE])
    await exact.send(initialWindow(MAX_WINDOW_SIZE - 4))
    expect(exact.goaways()).toEqual([[1, errorCodes.flowControl]])
  })

  test('with a small header table clear the client’s table in the next response', async () => {
    const respond = (stream: CallStream) => {
      stream.respond(Buffer.alloc(0))
    }
    const opened = openConnection(respond)
    const firstBytes = () => of(opened, frameTypes.headers).map(({ payload }) => payload[0])
    await opened.send(opening, settings([settingNames.headerTableSize, 4096]), headersOn(1))
    await opened.send(settings([settingNames.headerTableSize, 100]), headersOn(3), headersOn(5))
    expect(firstBytes()).toEqual([0x88, 0x40, 0x20, 0, 0x88, 0])
  })
})

describe('WINDOW_UPDATE', () => {
  const idle = { 'above the last one': 3, 'with an even id': 2 }
  test.each(Object.entries(idle))('on a stream %s closes the connection', async (_, stream) => {
    const { send, goaways } = openConnection()
    await send(opening, headersOn(1), windowUpdate(stream, 1))
    expect(goaways()).toEqual([[1, errorCodes.protocol]])
  })

  test('on a closed stream is ignored', async () => {
    const { send, goaways, resets } = openConnection((stream) => {
      stream.respond(Buffer.alloc(0))
    })
    await send(opening, headersOn(1, 5), windowUpdate(1, 1), windowUpdate(1, MAX_WINDOW_SIZE))
    expect([goaways(), resets()]).toEqual([[], []])
  })

  test('of a stream may reach 2^31 - 1; a larger window resets only the stream', async () => {
    const { send, started, goaways, resets } = openConnection()
    await send(opening, headersOn(1), headersOn(3), windowUpdate(1, MAX_WINDOW_SIZE - 65_535))
    expect(started[0]?.sendWindow).toBe(MAX_WINDOW_SIZE)
    await send(windowUpdate(1, 1), windowUpdate(3, MAX_WINDOW_SIZE - 65_534))
    expect(resets()).toEqual([
      [1, errorCodes.flowControl],
      [3, errorCodes.flowControl],
    ])
    await send(headersOn(5))
    expect([goaways(), started.length]).toEqual([[], 3])
  })

  test('of the connection may reach 2^31 - 1; a larger window closes the connection', async () => {
    const { send, connection, goaways } = openConnection()
    await send(opening, windowUpdate(0, MAX_WINDOW_SIZE - 65_535))
    expect([connection.sendWindow, goaways()]).toEqual([MAX_WINDOW_SIZE, []])
    await send(windowUpdate(0, 1))
    expect(goaways()).toEqual([[0, errorCodes.flowControl]])
  })
})

describe('pending output is sent', () => {
  const MESSAGE = Buffer.alloc(95)
  const write = (stream: CallStream) => {
    stream.write(MESSAGE)
  }

  test('when the window of its stream is increased', async () => {
    const opened = openConnection(write)
    await opened.send(opening, initialWindow(0), headersOn(1), headersOn(3))
    await opened.send(windowUpdate(0, 1000))
    expect([bytesOf(opened, 1), bytesOf(opened, 3)]).toEqual([0, 0])
    await opened.send(windowUpdate(3, 60))
    expect([bytesOf(opened, 1), bytesOf(opened, 3)]).toEqual([0, 60])
    await opened.send(initialWindow(30))
    expect([bytesOf(opened, 1), bytesOf(opened, 3)]).toEqual([30, 90])
  })

  test('when the window of the connection is increased', async () => {
    const opened = openConnection(write)
    opened.connection.sendWindow = 0
    await opened.send(opening, headersOn(1), headersOn(3))
    await opened.send(windowUpdate(1, 1000))
    expect([bytesOf(opened, 1), bytesOf(opened, 3)]).toEqual([0, 0])
    await opened.send(windowUpdate(0, 120))
    expect([bytesOf(opened, 1), bytesOf(opened, 3), opened.connection.sendWindow]).toEqual([
      100, 20, 0,
    ])
    await opened.send(windowUpdate(0, 1000))
    expect([bytesOf(opened, 3), opened.connection.sendWindow]).toEqual([100, 920])
  })

  test('when the client has read the output that filled the socket', async () => {
    const opened = openConnection(write, openPipe(256))
    const { budgets, reads, send, started } = opened
    await send(opening, headersOn(1))
    reads(false)
    started[0]?.write(Buffer.alloc(295))
    await settle()
    await send(ping(0, '12345678'))
    expect([opened.connection.output.isFull, opened.duplex.isPaused()]).toEqual([true, true])
    started[0]?.write(MESSAGE)
    await send()
    expect(bytesOf(opened, 1)).toBe(400)
    expect(budgets.output.held).toBeGreaterThan(300)
    reads(true)
    await send()
    expect([bytesOf(opened, 1), budgets.output.held]).toEqual([500, 0])
    expect([opened.connection.output.isFull, opened.duplex.isPaused()]).toEqual([false, false])
  })
})
