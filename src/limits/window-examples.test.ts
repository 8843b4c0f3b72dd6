// Decisions of the windows for given states. algorithms.test.ts tests what holds for all states.
import { describe, expect, test } from '@jest/globals'
import {
  defineExamples,
  MINUTE,
  perMinute,
  SECOND,
  START,
} from '../../test/kit/algorithm-examples.ts'
import { COUNT_MAX } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'

const now = START + 10 * SECOND

describe('5 per minute, 10 s after the start of the window', () => {
  const resetUs = 50 * SECOND
  const retryAfterUs = resetUs
  const counting = { ...perMinute(5), denyConsumes: true }
  defineExamples(fixedWindow, { limit: counting, nowUs: now }, [
    ['the first hit', undefined, 1, { admitted: true, remaining: 4, resetUs, next: [START, 1] }],
    ['the last hit', [START, 4], 1, { admitted: true, resetUs, next: [START, 5] }],
    ['one hit too many', [START, 5], 1, { over: 1, resetUs, retryAfterUs, next: [START, 6] }],
    ['some hits too many', [START, 3], 4, { over: 2, resetUs, retryAfterUs, next: [START, 7] }],
    ['hits of a full limit', [START, 1], 5, { over: 1, resetUs, retryAfterUs, next: [START, 6] }],
    [
      'hits that never fit',
      undefined,
      6,
      { over: 1, resetUs, retryAfterUs: Infinity, next: [START, 6] },
    ],
    ['a peek at a full counter', [START, 5], 0, { admitted: true, resetUs }],
    ['a refund of denied hits', [START, 9], -2, { admitted: true, resetUs, next: [START, 7] }],
    [
      'a refund of more hits than counted',
      [START, 1],
      -2,
      { admitted: true, remaining: 5, resetUs, next: [START, 0] },
    ],
    [
      'the next window',
      [START - MINUTE, 5],
      1,
      { admitted: true, remaining: 4, resetUs, next: [START, 1] },
    ],
    [
      'a clock that was set back by less than a window',
      [START + MINUTE, 2],
      1,
      { admitted: true, remaining: 2, resetUs: 110 * SECOND, next: [START + MINUTE, 3] },
    ],
    [
      'a clock that was set back by more than a window',
      [START + 2 * MINUTE, 2],
      0,
      { admitted: true, remaining: 3, resetUs, next: [START, 2] },
    ],
    ['the maximum of a count', [START, COUNT_MAX], 3, { over: 3, resetUs, retryAfterUs }],
  ])
  describe('if denied hits do not count', () => {
    defineExamples(fixedWindow, { limit: perMinute(5), nowUs: now }, [
      ['one hit', [START, 5], 1, { over: 1, resetUs, retryAfterUs }],
      ['several hits', [START, 4], 3, { remaining: 1, over: 3, resetUs, retryAfterUs }],
      ['a peek', [START, 5], 0, { resetUs, retryAfterUs }],
      ['a peek before the last hit', [START, 4], 0, { admitted: true, remaining: 1, resetUs }],
    ])
  })
  defineExamples(fixedWindow, { limit: counting, nowUs: START }, [
    [
      'a clock that was set back by a window',
      [START + MINUTE, 2],
      1,
      { admitted: true, remaining: 2, resetUs: 2 * MINUTE, next: [START + MINUTE, 3] },
    ],
  ])
})

describe('3 per minute, with the time of each hit', () => {
  const at = (...seconds: readonly number[]) => seconds.map((second) => START + second * SECOND)
  const full = at(1, 2, 3)
  const resetUs = 53 * SECOND
  defineExamples(slidingWindowLog, { limit: perMinute(3), nowUs: now }, [
    [
      'the first hits',
      undefined,
      2,
      { admitted: true, remaining: 1, resetUs: MINUTE, next: at(10, 10) },
    ],
    ['one hit too many', full, 1, { over: 1, resetUs, retryAfterUs: 51 * SECOND, next: full }],
    [
      'some hits too many',
      at(1, 2),
      2,
      { over: 2, remaining: 1, resetUs: 52 * SECOND, retryAfterUs: 51 * SECOND, next: at(1, 2) },
    ],
    [
      'hits of a full limit',
      at(1),
      3,
      { over: 3, remaining: 2, resetUs: 51 * SECOND, retryAfterUs: 51 * SECOND, next: at(1) },
    ],
    [
      'hits that never fit',
      undefined,
      4,
      { over: 4, remaining: 3, retryAfterUs: Infinity, next: [] },
    ],
    [
      'a hit that has just left',
      at(-50),
      1,
      { admitted: true, remaining: 2, resetUs: MINUTE, next: at(10) },
    ],
    ['a peek at a full counter', full, 0, { resetUs, retryAfterUs: 51 * SECOND }],
    [
      'a peek after a hit has left',
      at(-55, 1),
      0,
      { admitted: true, remaining: 2, resetUs: 51 * SECOND, next: at(1) },
    ],
    ['a refund', at(1, 2), -1, { admitted: true, remaining: 2, resetUs: 51 * SECOND, next: at(1) }],
    [
      'a refund of a full counter',
      full,
      -1,
      { admitted: true, remaining: 1, resetUs: 52 * SECOND, next: at(1, 2) },
    ],
    [
      'a refund of more hits than counted',
      at(1, 2),
      -5,
      { admitted: true, remaining: 3, next: [] },
    ],
    ['a refund of nothing', undefined, -1, { admitted: true, remaining: 3 }],
    [
      'a clock that was set back by less than a window',
      at(30),
      1,
      { admitted: true, remaining: 1, resetUs: 80 * SECOND, next: at(30, 30) },
    ],
    [
      'a clock that was set back by a window',
      at(70),
      1,
      { admitted: true, remaining: 1, resetUs: 2 * MINUTE, next: at(70, 70) },
    ],
    [
      'a clock that was set back by more',
      at(1, 71),
      0,
      { admitted: true, remaining: 1, resetUs: MINUTE, next: at(1, 10) },
    ],
    [
      'a clock that was set back after two hits',
      at(1, 2, 71),
      0,
      { resetUs: MINUTE, next: at(1, 2, 10), retryAfterUs: 51 * SECOND },
    ],
    [
      'a clock that was set back after other hits',
      at(20, 71),
      0,
      { admitted: true, remaining: 1, resetUs: 70 * SECOND, next: at(20, 20) },
    ],
  ])
})

describe('10 per minute, a quarter of a window after its start', () => {
  const nowUs = START + 15 * SECOND
  const expiresInUs = 105 * SECOND
  const resetUs = 105 * SECOND
  defineExamples(slidingWindowCounter, { limit: perMinute(10), nowUs }, [
    ['the first hit', undefined, 1, { admitted: true, remaining: 9, resetUs, next: [START, 1, 0] }],
    ['a peek at an empty counter', undefined, 0, { admitted: true, remaining: 10, expiresInUs }],
    ['the last hit', [START, 3, 8], 1, { admitted: true, resetUs, next: [START, 4, 8] }],
    ['one hit too many', [START, 4, 8], 1, { over: 1, resetUs, retryAfterUs: 7.5 * SECOND }],
    [
      'a share of a hit',
      [START, 1, 1],
      1,
      { admitted: true, remaining: 7, resetUs, next: [START, 2, 1] },
    ],
    [
      'the next window',
      [START - MINUTE, 6, 9],
      1,
      { admitted: true, remaining: 4, resetUs, next: [START, 1, 6] },
    ],
    [
      'the window after it',
      [START - 2 * MINUTE, 6, 9],
      1,
      { admitted: true, remaining: 9, resetUs, next: [START, 1, 0] },
    ],
    [
      'a refund',
      [START, 1, 4],
      -2,
      { admitted: true, remaining: 7, resetUs: 45 * SECOND, next: [START, 0, 4], expiresInUs },
    ],
    [
      'a refund of a full counter',
      [START, 10, 0],
      -2,
      { admitted: true, remaining: 2, resetUs, next: [START, 8, 0] },
    ],
    ['a peek at a full counter', [START, 10, 0], 0, { resetUs, retryAfterUs: 51 * SECOND }],
    [
      'hits that never fit',
      [START, 0, 0],
      11,
      { over: 11, remaining: 10, retryAfterUs: Infinity, expiresInUs },
    ],
    [
      'hits of a full limit',
      [START, 1, 0],
      10,
      { over: 10, remaining: 9, resetUs, retryAfterUs: resetUs },
    ],
    [
      'hits that fit in the next window',
      [START, 9, 0],
      2,
      { over: 2, remaining: 1, resetUs, retryAfterUs: 51_666_667 },
    ],
    [
      'hits that fit at its start',
      [START, 5, 10],
      5,
      { over: 5, resetUs, retryAfterUs: 45 * SECOND },
    ],
    [
      'a clock that was set back by less than a window',
      [START + MINUTE, 3, 4],
      1,
      { admitted: true, remaining: 2, resetUs: 165 * SECOND, next: [START + MINUTE, 4, 4] },
    ],
    [
      'a clock that was set back by more',
      [START + 2 * MINUTE, 3, 4],
      0,
      { admitted: true, remaining: 4, resetUs, next: [START, 3, 4] },
    ],
  ])

  test('a refund must reach the window of its hits', () => {
    const decision = slidingWindowCounter.decide({
      state: undefined,
      hits: 1,
      nowUs,
      limit: perMinute(10),
    })
    const refundableUs = (us: number) =>
      slidingWindowCounter.refundableUs({ ...decision, resetUs: us }, perMinute(10))
    expect([refundableUs(105 * SECOND), refundableUs(120 * SECOND)]).toEqual([45 * SECOND, MINUTE])
  })

  test.each([
    [105, 0, 4],
    [105, 75, 7],
    [105, 200, 10],
    [45, 22.5, 7],
    [0, 0, 10],
  ])('of 4 hits that remain for %d s, after %d s at least %d remain', (reset, elapsed, remain) => {
    const decision = { remaining: 4, resetUs: reset * SECOND }
    const remaining = slidingWindowCounter.remainingAfter(decision, elapsed * SECOND, perMinute(10))
    expect(remaining).toBe(remain)
  })
})
