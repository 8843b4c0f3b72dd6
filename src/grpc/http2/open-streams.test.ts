// Streams of one connection: slots are counted, and blocked streams take turns.
import { Duplex } from 'node:stream'
import { expect, test } from '@jest/globals'
import { ResponseHeaders } from './response-headers.ts'
import { CallStream, type StreamHost } from './call-stream.ts'
import { FrameOutput } from './frame-output.ts'
import { INITIAL_WINDOW_SIZE } from './frames.ts'
import { OpenStreams, MAX_CONCURRENT_STREAMS } from './open-streams.ts'
import { ProcessBounds } from './process-bounds.ts'

/** Streams 1, 3 and so on, with a connection window of 0. */
function openStreams(count: number) {
  const bounds = new ProcessBounds(() => undefined)
  const budgets = bounds.open('127.0.0.1', () => undefined)?.budgets
  if (budgets === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const streams = new OpenStreams(budgets.streams)
  const drained: number[] = []
  const duplex = new Duplex({
    write: (_chunk, _encoding, done) => {
      done()
    },
  })
  const host: StreamHost = {
    output: new FrameOutput(duplex, budgets.output),
    responseHeaders: new ResponseHeaders(),
    sendWindow: 0,
    budgets,
    responded: () => undefined,
    spend: () => undefined,
    runLater: () => undefined,
    reset: () => undefined,
    remove: (stream) => {
      streams.remove(stream)
    },
    freeSlot: () => {
      streams.freeSlot()
    },
    block: (stream) => {
      streams.block(stream)
    },
  }
  const opened = Array.from({ length: count }, (_, at) => {
    const stream = new CallStream(host, 1 + 2 * at, streams.initialWindowSize)
    stream.listener = {
      receive: () => undefined,
      drained: () => drained.push(stream.id),
      closed: () => undefined,
    }
    streams.add(stream)
    streams.lastStreamId = stream.id
    return stream
  })
  let checks = 0
  /** Increases the connection window; returns how often streams checked whether to continue. */
  const pump = (bytes: number) => {
    host.sendWindow += bytes
    checks = 0
    streams.pump(() => {
      checks += 1
      if (checks > 10 * count) throw new Error('blocked streams are checked endlessly')
      return host.sendWindow > 0
    })
    return checks
  }
  return { streams, opened, drained, pump, bounds, host }
}

const MESSAGE = Buffer.from('x') // 6 bytes with its prefix

test('blocked streams resume as the window allows, and are then queued last', () => {
  const { opened, drained, pump } = openStreams(3)
  for (const stream of opened) stream.write(MESSAGE)
  pump(3) // half of the first message
  expect(drained).toEqual([])
  pump(6)
  expect(drained).toEqual([3])
  pump(6)
  expect(drained).toEqual([3, 5])
  pump(3)
  expect(drained).toEqual([3, 5, 1])
})

test('a closed stream does not stay blocked', () => {
  const { opened, drained, pump } = openStreams(2)
  for (const stream of opened) stream.write(MESSAGE)
  opened[0]?.destroy()
  expect(pump(6)).toBe(1)
  expect(drained).toEqual([3])
})

test('a larger initial window applies to open streams, which then resume', () => {
  const { streams, opened, drained, host } = openStreams(1)
  const [stream] = opened
  if (stream === undefined) throw new Error('no stream was opened')
  streams.setInitialWindowSize(3)
  expect(stream.sendWindow).toBe(3)
  host.sendWindow = 100
  stream.write(MESSAGE)
  expect([stream.sendWindow, stream.hasPendingOutput]).toEqual([0, true])
  streams.setInitialWindowSize(INITIAL_WINDOW_SIZE)
  expect([stream.sendWindow, stream.hasPendingOutput]).toEqual([INITIAL_WINDOW_SIZE - 6, false])
  expect(drained).toEqual([1])
})

test('there are MAX_CONCURRENT_STREAMS slots, and each is released', () => {
  const { streams, bounds } = openStreams(0)
  for (let taken = 0; taken < MAX_CONCURRENT_STREAMS; taken += 1)
    expect(streams.takeSlot()).toBe(true)
  expect(streams.takeSlot()).toBe(false)
  expect(bounds.usage.streams.used).toBe(MAX_CONCURRENT_STREAMS)
  streams.freeSlot()
  expect(bounds.usage.streams.used).toBe(MAX_CONCURRENT_STREAMS - 1)
  expect(streams.takeSlot()).toBe(true)
})

test('a stream is idle if its id is even or above the last one', () => {
  const { streams } = openStreams(3)
  const idle = [1, 2, 3, 4, 5, 6, 7].filter((id) => streams.isIdle(id))
  expect(idle).toEqual([2, 4, 6, 7])
})

test('one check closes at most 100 timed-out streams', () => {
  const { streams, opened } = openStreams(150)
  for (const stream of opened) stream.deadlineMs = 10
  const destroy = (stream: CallStream) => {
    stream.destroy()
  }
  streams.closeTimedOut(9, destroy)
  expect(streams.count).toBe(150)
  streams.closeTimedOut(10, destroy)
  expect(streams.count).toBe(50)
  streams.closeTimedOut(10, destroy)
  expect(streams.count).toBe(0)
})
