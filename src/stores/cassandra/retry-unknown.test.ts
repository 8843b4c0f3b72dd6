// Changes whose outcome is unknown: retried until they are settled.
import { expect, jest, test } from '@jest/globals'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import { retryUnknown, type Attempted } from './retry-unknown.ts'

const failed = (outcome: FailedOutcome) => new StoreError('no response', { outcome })

const immediate = { pause: () => Promise.resolve(), monotonicMs: () => 0 }

/** An attempt that returns these outcomes in turn, then the last one for ever. */
function attempts(...outcomes: readonly (Attempted<string> | Error)[]) {
  let count = 0
  const attempt = () => {
    const outcome = outcomes[Math.min(count++, outcomes.length - 1)] ?? 'retry'
    return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
  }
  return { attempt, count: () => count }
}

test('retryUnknown() returns the result of a successful attempt', async () => {
  const { attempt, count } = attempts({ done: 'it' })
  expect(await retryUnknown(attempt, immediate)).toBe('it')
  expect(count()).toBe(1)
})

test('retryUnknown() retries a conflict and an unknown outcome', async () => {
  const { attempt, count } = attempts('retry', failed('unknown'), 'retry', { done: 'it' })
  expect(await retryUnknown(attempt, immediate)).toBe('it')
  expect(count()).toBe(4)
})

test('retryUnknown() aborts immediately if nothing was done', async () => {
  const { attempt, count } = attempts(failed('not-done'))
  await expect(retryUnknown(attempt, immediate)).rejects.toMatchObject({ outcome: 'not-done' })
  expect(count()).toBe(1)
})

test('retryUnknown() retries not-done after an unknown outcome', async () => {
  const { attempt, count } = attempts(failed('unknown'), failed('not-done'), { done: 'it' })
  expect(await retryUnknown(attempt, immediate)).toBe('it')
  expect(count()).toBe(3)
})

test('retryUnknown() throws unknown after a bounded number of attempts', async () => {
  const cause = failed('unknown')
  const { attempt, count } = attempts(cause)
  const retried = retryUnknown(attempt, immediate)
  await expect(retried).rejects.toMatchObject({ outcome: 'unknown', cause })
  expect(count()).toBe(12)
})

test('retryUnknown() throws not-done if every attempt conflicted', async () => {
  const { attempt } = attempts('retry')
  await expect(retryUnknown(attempt, immediate)).rejects.toMatchObject({ outcome: 'not-done' })
})

test('retryUnknown() rethrows a defect', async () => {
  const { attempt, count } = attempts(new TypeError('wrong'))
  await expect(retryUnknown(attempt, immediate)).rejects.toThrow(TypeError)
  expect(count()).toBe(1)
})

test('retryUnknown() doubles its pauses, up to a third of a second', async () => {
  const pauses: number[] = []
  const pause = (ms: number) => {
    pauses.push(ms)
    return Promise.resolve()
  }
  const random = jest.spyOn(Math, 'random').mockReturnValue(0)
  try {
    const retried = retryUnknown(attempts('retry').attempt, { ...immediate, pause })
    await expect(retried).rejects.toMatchObject({ outcome: 'not-done' })
  } finally {
    random.mockRestore()
  }
  expect(pauses).toEqual([10, 20, 40, 80, 160, 160, 160, 160, 160, 160, 160])
})

test('retryUnknown() tries once, however slow the process is', async () => {
  const times = [0, 5000]
  const monotonicMs = () => times.shift() ?? 5000
  const { attempt, count } = attempts({ done: 'it' })
  expect(await retryUnknown(attempt, { ...immediate, monotonicMs })).toBe('it')
  expect(count()).toBe(1)
})

test.each([
  [1999, 4],
  [2000, 3],
])('retryUnknown() starts no attempt after four seconds, with pauses of %i ms', async (ms, max) => {
  const { attempt, count } = attempts('retry')
  let nowMs = 0
  const pause = () => {
    nowMs += ms
    return Promise.resolve()
  }
  const retried = retryUnknown(attempt, { pause, monotonicMs: () => nowMs })
  await expect(retried).rejects.toMatchObject({ outcome: 'not-done' })
  expect(count()).toBe(max)
})
