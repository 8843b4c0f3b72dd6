// What is specific to the sliding window counter. algorithms.test.ts tests all algorithms.
import { expect, test } from '@jest/globals'
import { slidingWindowCounter } from './sliding-window-counter.ts'

const HOUR_US = 3_600_000_000

test('denied hits have a wait, even if rounding lets them fit now', () => {
  const requests = 566_357_485
  const limit = { requests, windowUs: HOUR_US, burst: requests, denyConsumes: false }
  // The limit was lowered: the previous window has more hits than it admits now.
  const state = [10 * HOUR_US, 0, 3_987_221_493]
  const nowUs = 10 * HOUR_US + 3_088_644_675
  const { admitted, retryAfterUs } = slidingWindowCounter.decide({ state, hits: 1, nowUs, limit })
  expect([admitted, retryAfterUs]).toEqual([false, 1])
})
