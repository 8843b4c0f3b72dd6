// A subset of a call's updates that is decided separately.
import { expect, test } from '@jest/globals'
import { type CounterUpdate, asSubset } from './counter-store.ts'
import { tokenBucket } from './token-bucket.ts'

const limit = { requests: 1, windowUs: 1_000_000, burst: 1, denyConsumes: false }
const updateOf = (veto: CounterUpdate['veto']): CounterUpdate => ({
  ...{ key: veto, algorithm: tokenBucket, limit, hits: 1, veto, isPerSecond: false },
})
const [alone, never, quota, other] = [
  updateOf('alone'),
  updateOf('never'),
  updateOf('together'),
  updateOf('together'),
]

test('a subset with all quotas of the call is unchanged', () => {
  const subset = [alone, quota, other]
  expect(asSubset(subset, [never, ...subset])).toBe(subset)
  expect(asSubset([alone], [alone, never])).toEqual([alone])
})

test('a subset that lacks a quota cannot deny the call by its other quotas', () => {
  expect(asSubset([alone, quota, never], [alone, quota, other, never])).toEqual([
    alone,
    { ...quota, veto: 'never' },
    never,
  ])
})
