// Changes whose outcome is unknown: retried until they are settled.
import { expect, test } from '@jest/globals'
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
  const { attempt, count } = attempts(failed('unknown'))
  await expect(retryUnknown(attempt, immediate)).rejects.toMatchObject({ outcome: 'unknown' })
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

test('retryUnknown() starts no attempt after four seconds and a pause', async () => {
  const { attempt, count } = attempts('retry')
  let nowMs = 0
  const pause = () => {
    nowMs += 1999
    return Promise.resolve()
  }
  const retried = retryUnknown(attempt, { pause, monotonicMs: () => nowMs })
  await expect(retried).rejects.toMatchObject({ outcome: 'not-done' })
  expect(count()).toBe(4)
})
