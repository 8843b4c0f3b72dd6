// Changes whose outcome is unknown: repeated until they are settled, and no longer.
import { expect, test } from '@jest/globals'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import { repeatUnknown, type Tried } from './repeat-unknown.ts'

const failed = (outcome: FailedOutcome) => new StoreError('no answer', { outcome })

/** Attempts that come to these, one after the other, and then to the last for ever. */
function attempts(...outcomes: readonly (Tried<string> | Error)[]) {
  let count = 0
  const attempt = () => {
    const outcome = outcomes[Math.min(count++, outcomes.length - 1)] ?? 'again'
    return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
  }
  return { attempt, count: () => count }
}

test('repeatUnknown() gives what is done at once', async () => {
  const { attempt, count } = attempts({ done: 'it' })
  expect(await repeatUnknown(attempt)).toBe('it')
  expect(count()).toBe(1)
})

test('repeatUnknown() tries again what was refused or is unknown', async () => {
  const { attempt, count } = attempts('again', failed('unknown'), 'again', { done: 'it' })
  expect(await repeatUnknown(attempt)).toBe('it')
  expect(count()).toBe(4)
})

test('repeatUnknown() gives up at once where nothing was done', async () => {
  const { attempt, count } = attempts(failed('not-done'))
  await expect(repeatUnknown(attempt)).rejects.toMatchObject({ outcome: 'not-done' })
  expect(count()).toBe(1)
})

test('repeatUnknown() does not forget that an earlier try may have done it', async () => {
  const { attempt, count } = attempts(failed('unknown'), failed('not-done'), { done: 'it' })
  expect(await repeatUnknown(attempt)).toBe('it')
  expect(count()).toBe(3)
})

test('repeatUnknown() ends as unknown after a bounded number of tries', async () => {
  const { attempt, count } = attempts(failed('unknown'))
  await expect(repeatUnknown(attempt)).rejects.toMatchObject({ outcome: 'unknown' })
  expect(count()).toBeLessThanOrEqual(12)
})

test('repeatUnknown() ends as not-done where every try was refused', async () => {
  const { attempt } = attempts('again')
  await expect(repeatUnknown(attempt)).rejects.toMatchObject({ outcome: 'not-done' })
})

test('repeatUnknown() lets a defect through', async () => {
  const { attempt, count } = attempts(new TypeError('wrong'))
  await expect(repeatUnknown(attempt)).rejects.toThrow(TypeError)
  expect(count()).toBe(1)
})
