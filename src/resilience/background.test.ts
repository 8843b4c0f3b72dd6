// Background work: one run at a time, again after its interval or a nudge, and a clean end.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { runInBackground } from './background.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A task whose runs end when the test says so. */
function started(everyMs = 1000) {
  const runs: { end: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = []
  const errors: unknown[] = []
  const background = runInBackground({
    everyMs,
    task: (signal) =>
      new Promise((resolve, reject) => {
        runs.push({ end: resolve, fail: reject, signal })
      }),
    onError: (error) => errors.push(error),
  })
  const end = async () => {
    runs.at(-1)?.end()
    await jest.advanceTimersByTimeAsync(0)
  }
  return { runs, errors, background, end }
}

test('it runs at once, and again an interval after the end of the last run', async () => {
  const { runs, end } = started()
  expect(runs).toHaveLength(1)
  await jest.advanceTimersByTimeAsync(60_000)
  expect(runs).toHaveLength(1) // still under way
  await end()
  await jest.advanceTimersByTimeAsync(999)
  expect(runs).toHaveLength(1)
  await jest.advanceTimersByTimeAsync(1)
  expect(runs).toHaveLength(2)
})

test('a nudge ends the waiting', async () => {
  const { runs, background, end } = started()
  await end()
  background.nudge()
  await jest.advanceTimersByTimeAsync(0)
  expect(runs).toHaveLength(2)
  await end()
  await jest.advanceTimersByTimeAsync(999)
  expect(runs).toHaveLength(2) // one nudge, one run
})

test('nudges during a run make one run more', async () => {
  const { runs, background, end } = started()
  background.nudge()
  background.nudge()
  await jest.advanceTimersByTimeAsync(5000)
  expect(runs).toHaveLength(1)
  await end()
  await jest.advanceTimersByTimeAsync(1)
  expect(runs).toHaveLength(2)
  await end()
  await jest.advanceTimersByTimeAsync(998)
  expect(runs).toHaveLength(2)
})

test('a run that fails is reported and tried again at the next interval', async () => {
  const { runs, errors } = started()
  const error = new Error('no')
  runs[0]?.fail(error)
  await jest.advanceTimersByTimeAsync(1000)
  expect(errors).toEqual([error])
  expect(runs).toHaveLength(2)
})

test('stop() tells the run under way, waits for its end, and no other follows', async () => {
  const { runs, background, end } = started()
  let stopped = false
  const stopping = background.stop().then(() => (stopped = true))
  await jest.advanceTimersByTimeAsync(10_000)
  expect(runs[0]?.signal.aborted).toBe(true)
  expect(stopped).toBe(false)
  await end()
  await stopping
  background.nudge()
  await jest.advanceTimersByTimeAsync(10_000)
  expect(runs).toHaveLength(1)
  expect(jest.getTimerCount()).toBe(0)
})

test('stop() between two runs ends the waiting', async () => {
  const { background, end } = started(86_400_000)
  await end()
  await background.stop()
  expect(jest.getTimerCount()).toBe(0)
})
