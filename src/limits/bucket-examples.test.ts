// Decisions of the buckets for given states. algorithms.test.ts tests what holds for all states.
import { describe, expect, test } from '@jest/globals'
import {
  defineExamples,
  MINUTE,
  perMinute,
  SECOND,
  START,
} from '../../test/kit/algorithm-examples.ts'
import type { CounterState } from './algorithm.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { tokenBucket } from './token-bucket.ts'

const now = START + 10 * SECOND

describe('10 per minute with a burst of 20: a hit each 6 s', () => {
  const HIT = 6 * SECOND // one unit drains in a microsecond
  const level = (hits: number, atUs = now): CounterState => [atUs, hits * HIT, HIT]
  const limit = perMinute(10, 20)
  defineExamples(tokenBucket, { limit, nowUs: now }, [
    [
      'the first hit',
      undefined,
      1,
      { admitted: true, remaining: 19, resetUs: HIT, next: level(1) },
    ],
    ['a whole burst', undefined, 20, { admitted: true, resetUs: 20 * HIT, next: level(20) }],
    ['one hit too many', level(20), 1, { over: 1, resetUs: 20 * HIT, retryAfterUs: HIT }],
    [
      'half a hit too early',
      level(20, now - HIT / 2),
      1,
      { over: 1, resetUs: 19.5 * HIT, retryAfterUs: HIT / 2 },
    ],
    [
      'a hit when it fits',
      level(20, now - HIT),
      1,
      { admitted: true, resetUs: 20 * HIT, next: level(20) },
    ],
    [
      'a burst too early',
      level(1),
      20,
      { over: 20, remaining: 19, resetUs: HIT, retryAfterUs: HIT },
    ],
    ['hits that never fit', undefined, 21, { over: 21, remaining: 20, retryAfterUs: Infinity }],
    ['a peek at a full bucket', level(20), 0, { resetUs: 20 * HIT, retryAfterUs: HIT }],
    [
      'a peek before the last hit',
      level(19),
      0,
      { admitted: true, remaining: 1, resetUs: 19 * HIT },
    ],
    ['a refund', level(3), -2, { admitted: true, remaining: 19, resetUs: HIT, next: level(1) }],
    [
      'a refund of more hits than counted',
      level(3),
      -9,
      { admitted: true, remaining: 20, next: level(0) },
    ],
    ['a refund of nothing', undefined, -1, { admitted: true, remaining: 20 }],
    [
      'a refund of a full bucket',
      level(20),
      -2,
      { admitted: true, remaining: 2, resetUs: 18 * HIT, next: level(18) },
    ],
    [
      'a refund after a clock was set back',
      level(2, now + 5 * SECOND),
      -9,
      { admitted: true, remaining: 20, next: level(0, now + 5 * SECOND) },
    ],
    [
      'a changed limit',
      [now, 30, 10],
      1,
      { admitted: true, remaining: 16, resetUs: 4 * HIT, next: level(4) },
    ],
    [
      'a changed limit, rounded up',
      [now, 10, 7],
      0,
      { admitted: true, remaining: 18, resetUs: 8_571_429 },
    ],
    ['a lowered limit', level(40), 0, { resetUs: 20 * HIT, retryAfterUs: HIT, next: level(20) }],
    [
      'a clock that was set back',
      level(2, now + 5 * SECOND),
      1,
      {
        admitted: true,
        remaining: 17,
        resetUs: 3 * HIT + 5 * SECOND,
        next: level(3, now + 5 * SECOND),
      },
    ],
    [
      'a clock that was set back, full',
      level(20, now + 5 * SECOND),
      1,
      { over: 1, resetUs: 125 * SECOND, retryAfterUs: HIT + 5 * SECOND },
    ],
    [
      'a clock that was set back by a window',
      level(2, now + MINUTE),
      0,
      { admitted: true, remaining: 18, resetUs: 72 * SECOND },
    ],
    [
      'a clock that was set back by more',
      level(2, now + MINUTE + 1),
      0,
      { admitted: true, remaining: 18, resetUs: 2 * HIT, next: level(2) },
    ],
  ])

  test('a burst must be countable in units of microseconds', () => {
    const minimal = { requests: 1, windowUs: 2 ** 20, burst: 2 ** 32, denyConsumes: false }
    expect(tokenBucket.checkLimit(minimal)).toBeUndefined() // 2^52 units
    expect(tokenBucket.checkLimit({ ...minimal, burst: 2 ** 32 + 1 })).toMatch(
      /^cannot count 1 per/,
    )
    expect(tokenBucket.checkLimit({ ...minimal, requests: 2, burst: 2 ** 33 })).toBeUndefined()
    expect(tokenBucket.checkLimit({ ...minimal, requests: 0, burst: 2 ** 53 })).toBeUndefined()
    expect(tokenBucket.scriptNumbers({ ...minimal, requests: 6 })).toEqual([2 ** 19, 3])
  })

  test.each([
    [0, 5],
    [30, 10],
    [31, 10],
    [100, 20],
  ])('of 5 hits that remain for 90 s, after %d s at least %d remain', (elapsed, remain) => {
    const decision = { remaining: 5, resetUs: 90 * SECOND }
    expect(tokenBucket.remainingAfter(decision, elapsed * SECOND, limit)).toBe(remain)
    expect(tokenBucket.remainingAfter(decision, elapsed * SECOND, perMinute(0))).toBe(0)
  })

  defineExamples(tokenBucket, { limit: perMinute(0), nowUs: now }, [
    ['a limit of 0', undefined, 2, { over: 2, retryAfterUs: Infinity }],
    ['a peek at a limit of 0', undefined, 0, { retryAfterUs: Infinity }],
    ['a refund of a limit of 0', undefined, -2, { admitted: true }],
    ['a limit of 0 does not change the state', level(2), 0, { retryAfterUs: Infinity }],
  ])
  defineExamples(tokenBucket, { limit: perMinute(90), nowUs: now }, [
    // A hit has 2,000,000 units, of which three drain in a microsecond.
    [
      'a hit while three quarters of the last one have drained',
      [now - SECOND / 2, 2_000_000, 2_000_000],
      1,
      { admitted: true, remaining: 88, resetUs: 833_334, next: [now, 2_500_000, 2_000_000] },
    ],
  ])
  defineExamples(leakyBucket, { limit: perMinute(10), nowUs: now }, [
    ['the first hit', undefined, 1, { admitted: true, resetUs: HIT, next: level(1) }],
    ['a hit too early', level(1), 1, { over: 1, resetUs: HIT, retryAfterUs: HIT }],
    ['several hits', undefined, 4, { admitted: true, resetUs: 4 * HIT, next: level(4) }],
    ['several hits too early', level(1), 4, { over: 4, resetUs: HIT, retryAfterUs: HIT }],
    ['hits that never fit', undefined, 11, { over: 11, remaining: 1, retryAfterUs: Infinity }],
    ['a peek at an empty bucket', undefined, 0, { admitted: true, remaining: 1 }],
    ['a peek too early', [now, 1, HIT], 0, { resetUs: 1, retryAfterUs: 1 }],
  ])
})
