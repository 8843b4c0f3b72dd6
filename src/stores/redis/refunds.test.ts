// Refunds of a denied call to the limits that admitted it.
import { expect, test } from '@jest/globals'
import type { Algorithm } from '../../limits/algorithm.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { leakyBucket } from '../../limits/leaky-bucket.ts'
import { slidingWindowCounter } from '../../limits/sliding-window-counter.ts'
import { slidingWindowLog } from '../../limits/sliding-window-log.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { refundsOf } from './refunds.ts'

const HOUR_US = 3_600_000_000
const SECOND_US = 1_000_000

/** The refund of a hit that was counted `leftUs` before its window ends. */
function refunded(given: { windowUs: number; leftUs: number; algorithm?: Algorithm }) {
  const { windowUs, leftUs, algorithm = fixedWindow } = given
  const limit = { requests: 10, windowUs, burst: 10, denyConsumes: false }
  const nowUs = 1000 * HOUR_US - leftUs
  const count = {
    ...{ key: 'a', algorithm, limit, hits: 1 },
    ...({ veto: 'alone', isPerSecond: false } as const),
  }
  const decision = algorithm.decide({ state: undefined, hits: 1, nowUs, limit })
  const decisions = [decision]
  const refunds = refundsOf({ places: [0], updates: [count], decisions: [decision] }, decisions)
  return [refunds.map(({ hits, veto }) => [hits, veto]), decisions[0]?.remaining]
}

test.each([
  ['an hour', { windowUs: HOUR_US, leftUs: 100_000 }],
  ['an hour that has just started', { windowUs: HOUR_US, leftUs: HOUR_US - 1 }],
  [
    'an hour of a sliding window',
    { windowUs: HOUR_US, leftUs: 100_000, algorithm: slidingWindowCounter },
  ],
  ['an hour that starts now', { windowUs: HOUR_US, leftUs: HOUR_US }],
  [
    'an hour of a sliding window that starts now',
    { windowUs: HOUR_US, leftUs: HOUR_US, algorithm: slidingWindowCounter },
  ],
  ['a second', { windowUs: SECOND_US, leftUs: 100_000 }],
  ['a tenth of a second', { windowUs: SECOND_US / 10, leftUs: 10_000 }],
])('hits are refunded within their window: %s', (_, given) => {
  expect(refunded(given)).toEqual([[[-1, 'never']], 10])
})

test.each([
  ['an hour', { windowUs: HOUR_US, leftUs: 99_999 }],
  [
    'an hour of a sliding window',
    { windowUs: HOUR_US, leftUs: 99_999, algorithm: slidingWindowCounter },
  ],
  ['a second', { windowUs: SECOND_US, leftUs: 1 }],
  ['a tenth of a second', { windowUs: SECOND_US / 10, leftUs: 9_999 }],
])('hits are not refunded just before their window ends: %s', (_, given) => {
  expect(refunded(given)).toEqual([[], 9])
})

test.each([slidingWindowLog, tokenBucket, leakyBucket])(
  'hits are refunded at any time if no window ends: $name',
  (algorithm) => {
    for (const leftUs of [1, HOUR_US]) {
      expect(refunded({ windowUs: HOUR_US, leftUs, algorithm })[0]).toEqual([[-1, 'never']])
    }
  },
)

test('nothing is refunded for denied limits and groups, or if denied calls count', () => {
  const limit = { requests: 10, windowUs: HOUR_US, burst: 10, denyConsumes: false }
  const nowUs = 1000 * HOUR_US
  const of = (hits: number, more: object = {}) => ({
    ...{ key: 'a', algorithm: fixedWindow, limit, hits },
    ...({ veto: 'alone', isPerSecond: false } as const),
    ...more,
  })
  const refundsFor = (updates: readonly ReturnType<typeof of>[]) => {
    const decisions = updates.map(({ hits }) =>
      fixedWindow.decide({ state: undefined, hits, nowUs, limit }),
    )
    const group = { places: updates.map((_, at) => at), updates, decisions }
    return refundsOf(group, [...decisions]).map(({ hits }) => hits)
  }
  expect(refundsFor([of(3), of(11, { veto: 'never' })])).toEqual([-3])
  expect(refundsFor([of(3), of(11)])).toEqual([])
  expect(refundsFor([of(0), of(-1), of(2)])).toEqual([-2])
  expect(refundsFor([of(3, { limit: { ...limit, denyConsumes: true } })])).toEqual([])
})
