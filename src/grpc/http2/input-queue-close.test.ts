// An input queue whose connection is closed: while it waits, or by the work of its own slice.
import { describe, expect, test } from '@jest/globals'
import { countedBudget, openPipe } from '../../../test/kit/ratelimit/http2-connection.ts'
import { FrameOutput } from './frame-output.ts'
import { FrameReader } from './frame-reader.ts'
import { InputQueue } from './input-queue.ts'
import { Lifetime } from './lifetime.ts'
import { RoundRobinScheduler } from './round-robin-scheduler.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const READ_AHEAD_BYTES = 7 * 1024

/** `count` frames without payload; the stream ids start at 1. */
function frames(count: number): Buffer {
  const one = (at: number) => Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, at + 1])
  return Buffer.concat(Array.from({ length: count }, (_, at) => one(at)))
}

interface Given {
  readonly msEach?: number
  readonly onFrame?: (id: number) => void
}

/** A queue that calls `onFrame` for each frame, each of which takes `msEach`. */
function openQueue({ msEach = 0, onFrame }: Given = {}) {
  const clock = { ms: 0 }
  const nowMs = () => clock.ms
  const budget = countedBudget()
  const { duplex } = openPipe()
  const lifetime = new Lifetime(duplex, new FrameOutput(duplex, countedBudget()), 0)
  const scheduler = new RoundRobinScheduler(nowMs)
  const reader = new FrameReader()
  const done: number[] = []
  const errors: unknown[] = []
  const close = () => {
    lifetime.close(clock.ms)
    inputQueue.clear()
  }
  const inputQueue = new InputQueue({
    ...{ address: 'a', scheduler, lifetime, reader, budget, nowMs, socket: duplex },
    connection: {
      handleFrame({ streamId }) {
        done.push(streamId)
        clock.ms += msEach
        onFrame?.(streamId)
      },
      fail(error) {
        errors.push(error)
        close()
      },
    },
  })
  inputQueue.add(PREFACE)
  return {
    ...{ inputQueue, clock, done, errors, budget, duplex, lifetime, reader, close },
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

describe('a queue that waits', () => {
  test('runs no work after the close', async () => {
    const { inputQueue, done, budget, close, turn } = openQueue({ msEach: 1 })
    inputQueue.add(frames(6))
    inputQueue.runLater(() => done.push(99))
    expect(budget.held).toBe(2 * 9 + READ_AHEAD_BYTES)
    close()
    inputQueue.runLater(() => done.push(100))
    expect(inputQueue.checkDeadlines(1e9)).toBe(false)
    expect(budget.held).toBe(0)
    await turn()
    await turn()
    expect([done, budget.held]).toEqual([[1, 2, 3, 4], 0])
    expect(inputQueue.runSlice(1e9)).toBe(false)
  })

  test('is not paused after the close', () => {
    const { inputQueue, duplex, close } = openQueue({ msEach: 1 })
    inputQueue.add(frames(6))
    expect(duplex.isPaused()).toBe(true)
    close()
    expect(duplex.isPaused()).toBe(false)
  })

  test('is closed if a check finds more read-ahead than its share', () => {
    const { inputQueue, budget, duplex, errors } = openQueue({ msEach: 1 })
    inputQueue.add(frames(5))
    budget.max = budget.held
    inputQueue.checkDeadlines(0)
    expect(errors).toEqual([])
    duplex.push(Buffer.alloc(READ_AHEAD_BYTES + 1))
    inputQueue.checkDeadlines(0)
    expect(errors).toHaveLength(1)
    inputQueue.checkDeadlines(0)
    expect([errors.length, budget.held]).toEqual([1, 0])
    duplex.destroy()
  })
})

test('a queue that exceeds its share before its first slice runs no work', async () => {
  const { inputQueue, budget, errors, done, turn, duplex } = openQueue()
  budget.max = READ_AHEAD_BYTES - 1
  inputQueue.runLater(() => done.push(99))
  expect([errors.length, duplex.isPaused()]).toEqual([1, false])
  await turn()
  expect([done, budget.held]).toEqual([[], 0])
})

describe('a slice in which the connection is closed', () => {
  test('handles no frame after the next check of the clock, and keeps nothing', async () => {
    const opened = openQueue({
      onFrame: (id) => {
        if (id === 2) opened.close()
      },
    })
    const { inputQueue, done, reader, budget, duplex, turn } = opened
    inputQueue.add(frames(10))
    await turn()
    expect([done, reader.length]).toEqual([[1, 2, 3, 4], 0]) // the connection ignores 3 and 4
    expect([budget.held, duplex.isPaused()]).toEqual([0, false])
  })

  test('by an error keeps nothing, and reports the error', async () => {
    const { inputQueue, errors, done, reader, budget, lifetime, turn } = openQueue({
      onFrame: (id) => {
        if (id === 2) throw new Error('a defect')
      },
    })
    inputQueue.add(frames(10))
    await turn()
    expect([errors, done]).toEqual([[new Error('a defect')], [1, 2]])
    expect([reader.length, budget.held, lifetime.isClosed]).toEqual([0, 0, true])
  })

  test('by a job runs none of the later jobs', async () => {
    const { inputQueue, done, budget, close, turn } = openQueue()
    inputQueue.runLater(close)
    inputQueue.runLater(() => done.push(99))
    await turn()
    expect([done, budget.held]).toEqual([[], 0])
  })
})
