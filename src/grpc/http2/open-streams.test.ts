// Streams of one connection: places are counted, and those that wait for the client take turns.
import { Duplex } from 'node:stream'
import { expect, test } from '@jest/globals'
import { AnswerHeaders } from './answer-headers.ts'
import { CallStream, type StreamHost } from './call-stream.ts'
import { FrameOutput } from './frame-output.ts'
import { WINDOW_BYTES } from './frames.ts'
import { OpenStreams, STREAMS_MAX } from './open-streams.ts'
import { ProcessBounds } from './process-bounds.ts'

/** Streams 1, 3 and so on, of a client that takes nothing until `host.sendWindow` says more. */
function openStreams(count: number) {
  const bounds = new ProcessBounds(() => undefined)
  const share = bounds.open('127.0.0.1', () => undefined)?.parts
  if (share === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const streams = new OpenStreams(share.streams)
  const drained: number[] = []
  const duplex = new Duplex({
    write: (_chunk, _encoding, done) => {
      done()
    },
  })
  const host: StreamHost = {
    output: new FrameOutput(duplex, share.output),
    answerHeaders: new AnswerHeaders(),
    sendWindow: 0,
    share,
    answered: () => undefined,
    spend: () => undefined,
    later: () => undefined,
    reset: () => undefined,
    forget: (stream) => {
      streams.forget(stream)
    },
    free: () => {
      streams.free()
    },
    block: (stream) => {
      streams.block(stream)
    },
  }
  const opened = Array.from({ length: count }, (_, at) => {
    const stream = new CallStream(host, 1 + 2 * at, streams.windowBytes)
    stream.listener = {
      take: () => undefined,
      drained: () => drained.push(stream.id),
      over: () => undefined,
    }
    streams.add(stream)
    streams.last = stream.id
    return stream
  })
  let looks = 0
  /** Lets the client take so much more; how often the streams looked whether they may go on. */
  const pump = (bytes: number) => {
    host.sendWindow += bytes
    looks = 0
    streams.pump(() => {
      looks += 1
      if (looks > 10 * count) throw new Error('streams that wait are asked without an end')
      return host.sendWindow > 0
    })
    return looks
  }
  return { streams, opened, drained, pump, bounds, host }
}

const MESSAGE = Buffer.from('x') // with its head it takes 6 bytes

test('streams that wait go on as far as the client takes more, and then wait last', () => {
  const { opened, drained, pump } = openStreams(3)
  for (const stream of opened) stream.write(MESSAGE)
  pump(3) // half of the first
  expect(drained).toEqual([])
  pump(6)
  expect(drained).toEqual([3])
  pump(6)
  expect(drained).toEqual([3, 5])
  pump(3)
  expect(drained).toEqual([3, 5, 1])
})

test('a stream that is over does not wait any more', () => {
  const { opened, drained, pump } = openStreams(2)
  for (const stream of opened) stream.write(MESSAGE)
  opened[0]?.cut()
  expect(pump(6)).toBe(1)
  expect(drained).toEqual([3])
})

test('a wider first window widens those of open streams, which then go on', () => {
  const { streams, opened, drained, host } = openStreams(1)
  const [stream] = opened
  if (stream === undefined) throw new Error('no stream was opened')
  streams.setWindow(3)
  expect(stream.sendWindow).toBe(3)
  host.sendWindow = 100
  stream.write(MESSAGE)
  expect([stream.sendWindow, stream.isBlocked]).toEqual([0, true])
  streams.setWindow(WINDOW_BYTES)
  expect([stream.sendWindow, stream.isBlocked]).toEqual([WINDOW_BYTES - 6, false])
  expect(drained).toEqual([1])
})

test('there are exactly as many places as are announced, and each is given back', () => {
  const { streams, bounds } = openStreams(0)
  for (let taken = 0; taken < STREAMS_MAX; taken += 1) expect(streams.takePlace()).toBe(true)
  expect(streams.takePlace()).toBe(false)
  expect(bounds.sums.streams.used).toBe(STREAMS_MAX)
  streams.free()
  expect(bounds.sums.streams.used).toBe(STREAMS_MAX - 1)
  expect(streams.takePlace()).toBe(true)
})

test('a stream is idle if its number is even, or beyond all that began', () => {
  const { streams } = openStreams(3)
  const idle = [1, 2, 3, 4, 5, 6, 7].filter((id) => streams.isIdle(id))
  expect(idle).toEqual([2, 4, 6, 7])
})

test('of streams that are late a hundred are ended at a time', () => {
  const { streams, opened } = openStreams(150)
  for (const stream of opened) stream.untilMs = 10
  const end = (stream: CallStream) => {
    stream.cut()
  }
  streams.endLate(9, end)
  expect(streams.count).toBe(150)
  streams.endLate(10, end)
  expect(streams.count).toBe(50)
  streams.endLate(10, end)
  expect(streams.count).toBe(0)
})
