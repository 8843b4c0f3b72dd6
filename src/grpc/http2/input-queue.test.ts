// The input of a connection is processed in slices of 1 ms; queued input is counted and pauses the
// socket. With a fake clock.
import { Duplex } from 'node:stream'
import { expect, jest, test } from '@jest/globals'
import { FrameOutput } from './frame-output.ts'
import { FrameReader } from './frame-reader.ts'
import { errorCodes } from './frames.ts'
import { InputQueue } from './input-queue.ts'
import { Lifetime } from './lifetime.ts'
import { ProcessBounds } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'
import { RoundRobinScheduler } from './round-robin-scheduler.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const READ_AHEAD_BYTES = 7 * 1024
const FRAME_BYTES = 10

/** Frames of one byte with consecutive stream ids. */
function frames(from: number, to: number): Buffer {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at)
  return Buffer.concat(numbers.map((number) => Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, number, 0])))
}
const longFrame = Buffer.concat([Buffer.from([0, 4, 0, 0, 0, 0, 0, 0, 99]), Buffer.alloc(1024)])

/** A queue that takes `msEach` per frame, with a budget of `heldMax` bytes. */
function openQueue({ msEach = 0, heldMax = Infinity, onFrame = (): void => undefined } = {}) {
  const clock = { ms: 0 }
  const nowMs = () => clock.ms
  const done: (number | string)[] = []
  const errors: unknown[] = []
  const budget = {
    held: 0,
    acquire(amount: number) {
      if (budget.held + amount > heldMax) return false
      budget.held += amount
      return true
    },
    release(amount: number) {
      budget.held -= amount
    },
  }
  const duplex = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, written) => {
      written()
    },
  })
  const lifetime = new Lifetime(duplex, new FrameOutput(duplex, budget), 0)
  const scheduler = new RoundRobinScheduler(nowMs)
  const reader = new FrameReader()
  const inputQueue = new InputQueue({
    ...{ address: 'a', scheduler, lifetime, reader, budget, nowMs },
    socket: duplex,
    connection: {
      handleFrame({ streamId }) {
        done.push(streamId)
        clock.ms += msEach
        onFrame()
      },
      fail(error) {
        errors.push(error)
        lifetime.close(clock.ms)
        inputQueue.clear()
      },
    },
  })
  inputQueue.add(PREFACE)
  return {
    ...{ inputQueue, clock, done, errors, budget, duplex, scheduler, lifetime, reader },
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

test('each incomplete frame times out 10 s after its first bytes', () => {
  const { inputQueue, clock } = openQueue()
  const bytes = frames(1, 2)
  inputQueue.add(bytes.subarray(0, FRAME_BYTES - 1))
  expect([inputQueue.checkDeadlines(10_000), inputQueue.checkDeadlines(10_001)]).toEqual([
    false,
    true,
  ])
  clock.ms = 9000
  inputQueue.add(bytes.subarray(FRAME_BYTES - 1, 2 * FRAME_BYTES - 1))
  expect([inputQueue.checkDeadlines(19_000), inputQueue.checkDeadlines(19_001)]).toEqual([
    false,
    true,
  ])
  inputQueue.add(bytes.subarray(2 * FRAME_BYTES - 1))
  expect(inputQueue.checkDeadlines(1e9)).toBe(false)
})

test('input left after a slice is counted, and the socket is paused', async () => {
  const { inputQueue, done, budget, duplex, turn } = openQueue({ msEach: 1 })
  inputQueue.add(frames(1, 10))
  expect(done).toEqual([1, 2, 3, 4]) // the clock is checked after every fourth frame
  expect(duplex.isPaused()).toBe(true)
  expect(budget.held).toBe(6 * FRAME_BYTES + READ_AHEAD_BYTES)
  inputQueue.add(frames(11, 12))
  expect(budget.held).toBe(8 * FRAME_BYTES + READ_AHEAD_BYTES)
  expect(inputQueue.checkDeadlines(1e9)).toBe(false) // the server, not the client, delays the frame
  for (let i = 0; i < 4; i += 1) await turn()
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  expect([budget.held, duplex.isPaused()]).toEqual([0, false])
})

test('the read-ahead of a paused socket is counted at the next check', async () => {
  const { inputQueue, budget, duplex, turn } = openQueue({ msEach: 1 })
  inputQueue.add(frames(1, 10))
  duplex.push(Buffer.alloc(2 * READ_AHEAD_BYTES))
  inputQueue.checkDeadlines(0)
  expect(budget.held).toBe(6 * FRAME_BYTES + 2 * READ_AHEAD_BYTES)
  duplex.destroy()
  await turn()
})

test('2,000 connections of one address can all wait, each with a full HPACK table', () => {
  const bounds = new ProcessBounds(() => undefined)
  for (let i = 0; i < 2000; i += 1) {
    const connection = bounds.open('10.0.0.1', () => {
      throw new Error('a connection was shed')
    })
    expect(connection?.budgets.input.acquire(1024 + READ_AHEAD_BYTES)).toBe(true)
    expect(connection?.budgets.headers.acquire(3 * 4096)).toBe(true)
  }
})

test('the clock is checked after each long frame', () => {
  const { inputQueue, done } = openQueue({ msEach: 1 })
  inputQueue.add(Buffer.concat([longFrame, longFrame]))
  expect(done).toEqual([99])
})

test('a cleared queue releases its budget once', async () => {
  const { inputQueue, done, budget, turn } = openQueue({ msEach: 1 })
  inputQueue.add(frames(1, 10))
  inputQueue.runLater(() => done.push('job'))
  inputQueue.clear()
  inputQueue.clear()
  expect(budget.held).toBe(0)
  await turn()
  expect(done).toEqual([1, 2, 3, 4])
})

test('a connection whose frames exceed its share is closed', () => {
  const heldMax = 6 * FRAME_BYTES + READ_AHEAD_BYTES
  const fits = openQueue({ msEach: 1, heldMax })
  fits.inputQueue.add(frames(1, 10))
  expect(fits.errors).toEqual([])
  const exceeds = openQueue({ msEach: 1, heldMax: heldMax - 1 })
  exceeds.inputQueue.add(frames(1, 10))
  expect(exceeds.errors).toEqual([expect.any(ProtocolError)])
  expect(exceeds.errors).toMatchObject([{ code: errorCodes.enhanceYourCalm }])
  expect(exceeds.budget.held).toBe(0)
})

test.each([
  ['another address', 'b'],
  ['the same address', 'a'],
])('deferred work runs in slices, in turns with a connection of %s', async (_, address) => {
  const { inputQueue, clock, done, duplex, scheduler, turn } = openQueue()
  for (const name of ['first', 'second']) {
    inputQueue.runLater(() => {
      clock.ms += 1
      done.push(name)
    })
  }
  scheduler.defer({
    address,
    runSlice() {
      done.push('other')
      return false
    },
  })
  expect(duplex.isPaused()).toBe(true)
  await turn()
  expect(done).toEqual(['first', 'other', 'second'])
  await turn()
  expect(duplex.isPaused()).toBe(false)
})

test('work that a frame defers runs in one later slice, before the next connection', async () => {
  const { inputQueue, done, scheduler, turn } = openQueue({
    onFrame: () => {
      for (const name of ['first', 'second']) inputQueue.runLater(() => done.push(name))
    },
  })
  const runSlice = jest.spyOn(inputQueue, 'runSlice')
  inputQueue.add(frames(1, 1))
  const other = {
    address: 'a',
    runSlice() {
      done.push('other')
      return false
    },
  }
  scheduler.defer(other)
  scheduler.defer(other)
  expect([done, runSlice.mock.results.length]).toEqual([[1], 1])
  await turn()
  expect(done).toEqual([1, 'first', 'second', 'other', 'other'])
  expect(runSlice.mock.results.map(({ value }) => value)).toEqual([true, false])
})

test('a frame times out 10 s after its first bytes, even if more of its bytes arrive', () => {
  const { inputQueue, clock } = openQueue()
  const bytes = frames(1, 1)
  for (const ms of [0, 4000, 8000]) {
    clock.ms = ms
    inputQueue.add(bytes.subarray(ms / 4000, ms / 4000 + 1))
  }
  const checks = () => [inputQueue.checkDeadlines(10_000), inputQueue.checkDeadlines(10_001)]
  expect(checks()).toEqual([false, true])
  inputQueue.clear()
  expect(checks()).toEqual([false, false])
})

test('a frame of less than 1 KiB is not a long one', () => {
  const { inputQueue, done } = openQueue({ msEach: 1 })
  const short = Buffer.concat([Buffer.from([0, 3, 255, 0, 0, 0, 0, 0, 9]), Buffer.alloc(1023)])
  inputQueue.add(Buffer.concat([short, short, short, short, short]))
  expect(done).toEqual([9, 9, 9, 9])
})

test('incomplete frames are counted without read-ahead', () => {
  const { inputQueue, budget, duplex } = openQueue()
  inputQueue.add(frames(1, 2).subarray(0, FRAME_BYTES + 3))
  expect([budget.held, duplex.isPaused()]).toEqual([3, false])
  inputQueue.checkDeadlines(0)
  expect(budget.held).toBe(3)
  inputQueue.add(frames(2, 2).subarray(3))
  expect(budget.held).toBe(0)
})

test('the read-ahead is released with the queued input', async () => {
  const { inputQueue, budget, duplex, turn } = openQueue({ msEach: 1 })
  inputQueue.add(frames(1, 4))
  expect([budget.held, duplex.isPaused()]).toEqual([0, false]) // no input remains
  await turn()
  inputQueue.add(frames(1, 5))
  expect([budget.held, duplex.isPaused()]).toEqual([FRAME_BYTES + READ_AHEAD_BYTES, true])
  await turn()
  expect([budget.held, duplex.isPaused()]).toEqual([0, false])
})
