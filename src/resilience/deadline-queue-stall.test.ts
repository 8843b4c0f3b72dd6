// Deadlines by a simulated clock: to the millisecond, and after a stall of this process, which is
// a timer that fires with a delay.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { createDeadlineQueue } from './deadline-queue.ts'

const MS_MAX = 40

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] })
})
afterEach(() => {
  jest.useRealTimers()
})

/** A queue, and the names of the calls that timed out; `stall` delays its clock. */
function setUp() {
  const clock = { stalledMs: 0 }
  const timedOut: string[] = []
  const deadlines = createDeadlineQueue(MS_MAX, () => Date.now() + clock.stalledMs)
  const add = (name: string) => deadlines.add(() => timedOut.push(name))
  /** Advances the clock and the timers, and runs what is then due. */
  const advance = async (ms: number) => {
    await jest.advanceTimersByTimeAsync(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  /** Advances the timers, which fire this many milliseconds after their time. */
  const advanceWithStall = (ms: number, stallMs: number) => {
    clock.stalledMs += stallMs
    return advance(ms)
  }
  return { deadlines, timedOut, add, advance, advanceWithStall }
}

describe('one timer', () => {
  test('times out each call at its own deadline', async () => {
    const { timedOut, add, advance } = setUp()
    add('first')
    await advance(10)
    add('second')
    await advance(5)
    add('third')
    expect(jest.getTimerCount()).toBe(1)
    await advance(24)
    expect(timedOut).toEqual([])
    await advance(1)
    expect(timedOut).toEqual(['first'])
    await advance(9)
    expect(timedOut).toEqual(['first'])
    await advance(1)
    expect(timedOut).toEqual(['first', 'second'])
    await advance(5)
    expect(timedOut).toEqual(['first', 'second', 'third'])
  })

  test('is set while calls are pending, and not before or after', async () => {
    const { timedOut, add, advance } = setUp()
    expect(jest.getTimerCount()).toBe(0)
    add('first')
    await advance(MS_MAX)
    expect([timedOut, jest.getTimerCount()]).toEqual([['first'], 0])
    await advance(1000)
    add('second')
    expect(jest.getTimerCount()).toBe(1)
    await advance(MS_MAX)
    expect(timedOut).toEqual(['first', 'second'])
  })

  test('does not keep the process running', () => {
    jest.useRealTimers()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
    const before = timers().length
    const deadlines = createDeadlineQueue(1, () => performance.now())
    deadlines.add(() => undefined)
    expect(timers()).toHaveLength(before)
  })
})

describe('after a stall', () => {
  test('of more than 5 ms, due calls have as long as the stall to complete', async () => {
    const { deadlines, timedOut, add, advance, advanceWithStall } = setUp()
    const completed = add('completed')
    add('first')
    await advanceWithStall(MS_MAX, 6)
    expect(timedOut).toEqual([])
    expect(deadlines.remove(completed)).toBe(true)
    await advance(5)
    expect(timedOut).toEqual([])
    await advance(1)
    expect(timedOut).toEqual(['first'])
  })

  test('of 5 ms, due calls time out', async () => {
    const { timedOut, add, advanceWithStall } = setUp()
    add('first')
    await advanceWithStall(MS_MAX, 5)
    expect(timedOut).toEqual(['first'])
  })

  test('longer than the timeout, due calls have the timeout to complete', async () => {
    const { timedOut, add, advance, advanceWithStall } = setUp()
    add('first')
    await advanceWithStall(MS_MAX, 1000)
    await advance(MS_MAX - 1)
    expect(timedOut).toEqual([])
    await advance(1)
    expect(timedOut).toEqual(['first'])
  })

  test('deadlines are extended once, even if another stall follows', async () => {
    const { timedOut, add, advanceWithStall } = setUp()
    add('first')
    await advanceWithStall(MS_MAX, 20)
    expect(timedOut).toEqual([])
    await advanceWithStall(20, 20)
    expect(timedOut).toEqual(['first'])
    add('second')
    await advanceWithStall(MS_MAX, 20) // a separate stall
    expect(timedOut).toEqual(['first'])
    await advanceWithStall(20, 0)
    expect(timedOut).toEqual(['first', 'second'])
  })
})

describe('a call', () => {
  test('is removed once: when it completes, times out or is removed', async () => {
    const { deadlines, add, advance } = setUp()
    const removed = add('removed')
    expect([deadlines.remove(removed), deadlines.remove(removed)]).toEqual([true, false])
    const expired = add('expired')
    await advance(MS_MAX)
    expect(deadlines.remove(expired)).toBe(false)
    await deadlines.within(Promise.resolve('completed'))
    await deadlines.within(Promise.reject(new Error('failed'))).catch(() => undefined)
    expect(deadlines.expireAll()).toBe(0)
  })

  test('that another handler removes does not time out', () => {
    const { deadlines, timedOut, add } = setUp()
    deadlines.add(() => {
      deadlines.remove(second)
    })
    const second = add('second')
    deadlines.expireAll()
    expect(timedOut).toEqual([])
  })

  test.each([
    ['an error as it is', new TypeError('no host'), new TypeError('no host')],
    ['another value as an error', 'no host', new Error('no host')],
  ])('rejects with %s', async (_, thrown, expected) => {
    const { deadlines } = setUp()
    const { promise, reject } = Promise.withResolvers<never>()
    reject(thrown)
    const error: unknown = await deadlines.within(promise).catch((caught: unknown) => caught)
    expect(error).toStrictEqual(expected)
  })
})
