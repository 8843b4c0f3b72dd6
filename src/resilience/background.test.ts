// Background tasks: one run at a time, the next after an interval or a trigger, and a clean stop.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { runInBackground } from './background.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A task whose runs the test completes. */
function startTask(everyMs = 1000) {
  const runs: { complete: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = []
  const errors: unknown[] = []
  const background = runInBackground({
    everyMs,
    task: (signal) =>
      new Promise((resolve, reject) => {
        runs.push({ complete: resolve, fail: reject, signal })
      }),
    onError: (error) => errors.push(error),
  })
  const complete = async () => {
    runs.at(-1)?.complete()
    await jest.advanceTimersByTimeAsync(0)
  }
  return { runs, errors, background, complete }
}

test('a task runs immediately, then one interval after each run completes', async () => {
  const { runs, complete } = startTask()
  expect(runs).toHaveLength(1)
  await jest.advanceTimersByTimeAsync(60_000)
  expect(runs).toHaveLength(1) // still running
  await complete()
  await jest.advanceTimersByTimeAsync(999)
  expect(runs).toHaveLength(1)
  await jest.advanceTimersByTimeAsync(1)
  expect(runs).toHaveLength(2)
})

test('a task that throws is reported, and runs when the interval is over', async () => {
  const errors: unknown[] = []
  const defect = new TypeError('a defect')
  let runs = 0
  const task = () => {
    runs++
    if (runs === 1) throw defect
  }
  const onError = (error: unknown) => errors.push(error)
  const background = runInBackground({ everyMs: 1000, task, onError })
  await jest.advanceTimersByTimeAsync(1000)
  expect([runs, errors]).toEqual([2, [defect]])
  await background.stop()
})

test('a trigger skips the rest of the wait', async () => {
  const { runs, background, complete } = startTask()
  await complete()
  background.trigger()
  await jest.advanceTimersByTimeAsync(0)
  expect(runs).toHaveLength(2)
  await complete()
  await jest.advanceTimersByTimeAsync(999)
  expect(runs).toHaveLength(2) // one trigger, one run
})

test('triggers during a run cause one more run', async () => {
  const { runs, background, complete } = startTask()
  background.trigger()
  background.trigger()
  await jest.advanceTimersByTimeAsync(5000)
  expect(runs).toHaveLength(1)
  await complete()
  await jest.advanceTimersByTimeAsync(1)
  expect(runs).toHaveLength(2)
  await complete()
  await jest.advanceTimersByTimeAsync(998)
  expect(runs).toHaveLength(2)
})

test('a failed run is reported and retried after the next interval', async () => {
  const { runs, errors } = startTask()
  const error = new Error('no')
  runs[0]?.fail(error)
  await jest.advanceTimersByTimeAsync(1000)
  expect(errors).toEqual([error])
  expect(runs).toHaveLength(2)
})

test('stop() aborts the current run, waits for it, and starts no other', async () => {
  const { runs, background, complete } = startTask()
  let stopped = false
  const stopping = background.stop().then(() => (stopped = true))
  await jest.advanceTimersByTimeAsync(10_000)
  expect(runs[0]?.signal.aborted).toBe(true)
  expect(stopped).toBe(false)
  await complete()
  await stopping
  background.trigger()
  await jest.advanceTimersByTimeAsync(10_000)
  expect(runs).toHaveLength(1)
  expect(jest.getTimerCount()).toBe(0)
})

test('stop() between two runs aborts the wait', async () => {
  const { background, complete } = startTask(86_400_000)
  await complete()
  await background.stop()
  expect(jest.getTimerCount()).toBe(0)
})
