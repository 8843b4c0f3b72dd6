// What distinguishes the algorithms: what rules may set, and how hits leave a counter.
import { expect, test } from '@jest/globals'
import type { Algorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'
import { tokenBucket } from './token-bucket.ts'

const all: readonly Algorithm[] = [
  fixedWindow,
  slidingWindowLog,
  slidingWindowCounter,
  tokenBucket,
  leakyBucket,
]
const limit = { requests: 100, burst: 100, windowUs: 10_000_000, denyConsumes: false }
const START_US = 1_790_000_000_000_000

test.each([
  [tokenBucket, 5_000_000, 50],
  [slidingWindowCounter, 15_000_000, 50],
  [slidingWindowCounter, 10_000_000, 0],
])('$name regains hits before its reset', (algorithm, elapsedUs, remaining) => {
  const input = { state: undefined, hits: 100, nowUs: START_US, limit }
  const decision = algorithm.decide(input)
  expect(algorithm.remainingAfter(decision, elapsedUs, limit)).toBe(remaining)
})

test('the algorithms differ in what rules may set, and in how hits leave them', () => {
  const traits = all.map((each) =>
    [
      each.name,
      ...(each.takesBurst ? ['has a burst'] : []),
      ...(each.denyConsumesByDefault ? ['denied hits count'] : []),
      ...(each.drains ? ['drains'] : []),
    ].join(', '),
  )
  expect(traits).toEqual([
    'fixed_window, denied hits count',
    'sliding_window_log',
    'sliding_window_counter',
    'token_bucket, has a burst, drains',
    'leaky_bucket, drains',
  ])
})

test('only a window with a fixed start bounds the time of a refund', () => {
  const refundableUs = Object.fromEntries(
    all.map((algorithm) => {
      const decision = algorithm.decide({ state: undefined, hits: 1, nowUs: START_US + 1, limit })
      return [algorithm.name, algorithm.refundableUs(decision, limit)]
    }),
  )
  expect(refundableUs).toEqual({
    fixed_window: 9_999_999,
    sliding_window_log: Infinity,
    sliding_window_counter: 9_999_999,
    token_bucket: Infinity,
    leaky_bucket: Infinity,
  })
})

test.each([fixedWindow, slidingWindowLog, leakyBucket])(
  'what remains of a $name is not known to grow before its reset',
  (algorithm) => {
    expect(algorithm.remainingAfter({ remaining: 7, resetUs: 5 }, 4, limit)).toBe(7)
  },
)
