// The error of a failed store call: callers decide by its class and its outcome.
import { expect, test } from '@jest/globals'
import { RejectedWriteError, StoreError } from './store-error.ts'

test.each(['not-done', 'unknown'] as const)('keeps the outcome %s and the cause', (outcome) => {
  const cause = new Error('socket closed')
  const error = new StoreError('Cassandra unavailable', { outcome, cause })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({ name: 'StoreError', message: 'Cassandra unavailable' })
  expect([error.outcome, error.cause]).toEqual([outcome, cause])
})

test('a rejected write has no effect, and keeps its reason and its cause', () => {
  const cause = new Error('value too large')
  const error = new RejectedWriteError('the target has more than 64 KiB', cause)
  expect(error).toBeInstanceOf(StoreError)
  expect([error.outcome, error.reason, error.cause]).toEqual([
    'not-done',
    'the target has more than 64 KiB',
    cause,
  ])
  expect(error.message).toContain(error.reason)
})
