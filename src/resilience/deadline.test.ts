// Clocks, pauses that are aborted, and deadlines that clear their timers.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { monotonicMs, pause, steadyNowUs, within } from './deadline.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const timeoutError = () => new Error('timeout')

test('within() settles as the promise does, and clears its timer', async () => {
  expect(await within(100, Promise.resolve('value'), timeoutError)).toBe('value')
  await expect(within(100, Promise.reject(new Error('own')), timeoutError)).rejects.toThrow('own')
  expect(jest.getTimerCount()).toBe(0)
})

test('within() throws the timeout error at the deadline', async () => {
  const waiting = within(100, new Promise(() => undefined), timeoutError)
  const thrown = expect(waiting).rejects.toThrow('timeout')
  await jest.advanceTimersByTimeAsync(100)
  await thrown
})

test('a rejection after the deadline is ignored', async () => {
  const failing = new Promise<never>((_, reject) => {
    setTimeout(() => {
      reject(new Error('own'))
    }, 200)
  })
  const thrown = expect(within(100, failing, timeoutError)).rejects.toThrow('timeout')
  await jest.advanceTimersByTimeAsync(300)
  await thrown
})

test('pause() resolves when its signal aborts, immediately if it is aborted', async () => {
  jest.useRealTimers()
  const stopping = new AbortController()
  const waiting = pause(3_600_000, stopping.signal)
  stopping.abort()
  await waiting
  await pause(3_600_000, stopping.signal)
  await pause(0)
})

test('pause() waits for its time without a signal, or with one that does not abort', async () => {
  jest.useRealTimers()
  const { signal } = new AbortController()
  for (const waiting of [() => pause(20), () => pause(20, signal)]) {
    const startMs = performance.now()
    await waiting()
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(18)
  }
})

test('the clocks are those of the process, in milliseconds and in microseconds', () => {
  jest.useRealTimers()
  const read = () => performance.now()
  const [beforeMs, nowMs, nowUs, afterMs] = [read(), monotonicMs(), steadyNowUs(), read()]
  expect(nowMs).toBeGreaterThanOrEqual(beforeMs)
  expect(nowMs).toBeLessThanOrEqual(afterMs)
  const sinceStartMs = nowUs / 1000 - performance.timeOrigin
  expect(sinceStartMs).toBeGreaterThanOrEqual(beforeMs - 1)
  expect(sinceStartMs).toBeLessThanOrEqual(afterMs + 1)
})
