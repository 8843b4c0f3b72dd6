// The arithmetic of envoyproxy/ratelimit for hits within, near and beyond a limit. No counter
// decreases, for any decision.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { algorithms } from '../../limits/algorithms.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import type { CounterState } from '../../limits/algorithm.ts'
import { type CountedHits, RuleCounters } from './rule-counters.ts'

const RATIO = 0.8

/** The decision of a fixed window in which `hits` raise the count to `after`. */
function hitsAt(window: { capacity: number; after: number; hits: number }): CountedHits {
  const { capacity, after, hits } = window
  return {
    hits,
    capacity,
    admitted: after <= capacity,
    remaining: Math.max(0, capacity - after),
    over: after <= capacity ? 0 : Math.min(hits, after - capacity),
    isShadow: false,
    isFromDenyCache: false,
  }
}

function countersOf(...calls: CountedHits[]) {
  const counters = new RuleCounters('domain.key', RATIO)
  for (const call of calls) counters.record(call)
  return {
    total: counters.total_hits,
    within: counters.within_limit,
    near: counters.near_limit,
    over: counters.over_limit,
    fromDenyCache: counters.over_limit_with_local_cache,
    shadow: counters.shadow_mode,
  }
}

describe('the counters after one call', () => {
  test.each([
    // capacity, after, hits → within, near, over
    [15, 11, 1, 1, 0, 0],
    [15, 12, 1, 1, 0, 0], // at the threshold: not above it
    [15, 13, 1, 1, 1, 0],
    [15, 15, 1, 1, 1, 0],
    [15, 16, 1, 0, 0, 1],
    [20, 5, 3, 3, 0, 0],
    [8, 7, 2, 2, 1, 0], // partly near
    [20, 19, 3, 3, 3, 0],
    [20, 22, 3, 0, 1, 2], // partly beyond, the others near
    [20, 22, 7, 0, 4, 2], // partly below the threshold, near and beyond
    [10, 30, 3, 0, 0, 3],
    [1, 1, 1, 1, 1, 0],
    [0, 1, 1, 0, 0, 1],
    [0, 5, 5, 0, 0, 5],
  ])('limit %i, count %i, hits %i: within %i, near %i, over %i', (...row) => {
    const [capacity, after, hits, within, near, over] = row
    const expected = { total: hits, within, near, over, fromDenyCache: 0, shadow: 0 }
    expect(countersOf(hitsAt({ capacity, after, hits }))).toEqual(expected)
  })
})

test('peeks and refunds are not counted, even beyond the limit', () => {
  for (const hits of [0, -1, -5])
    expect(Object.values(countersOf(hitsAt({ capacity: 10, after: 12, hits })))).toEqual([
      0, 0, 0, 0, 0, 0,
    ])
})

test('a call of a rule in shadow mode returns the hits beyond the limit', () => {
  const counters = new RuleCounters('domain.key', RATIO)
  const call = hitsAt({ capacity: 10, after: 12, hits: 3 })
  const within = hitsAt({ capacity: 10, after: 10, hits: 3 })
  const calls = [{ ...call, isShadow: true }, call, { ...within, isShadow: true }]
  expect(calls.map((each) => counters.record(each))).toEqual([2, 0, 0])
})

test('hits denied from the deny cache count as over_limit and over_limit_with_local_cache', () => {
  const call = { ...hitsAt({ capacity: 5, after: 6, hits: 2 }), isFromDenyCache: true }
  expect(countersOf(call)).toMatchObject({
    total: 2,
    over: 2,
    fromDenyCache: 2,
    near: 0,
    shadow: 0,
  })
  expect(countersOf({ ...call, isShadow: true })).toMatchObject({
    over: 2,
    fromDenyCache: 2,
    shadow: 2,
  })
})

test('a rule in shadow mode counts only hits that it would deny as shadow_mode', () => {
  const shadow = { ...hitsAt({ capacity: 5, after: 7, hits: 5 }), isShadow: true }
  expect(countersOf(shadow)).toMatchObject({ over: 2, near: 1, shadow: 2 })
  const within = { ...hitsAt({ capacity: 5, after: 5, hits: 5 }), isShadow: true }
  expect(countersOf(within)).toMatchObject({ within: 5, over: 0, shadow: 0 })
})

test('the threshold has single precision, as in envoyproxy/ratelimit', () => {
  expect(Math.floor(100 * 0.29)).toBe(28) // in double precision; in single it is 29
  const counters = new RuleCounters('d.k', 0.29)
  counters.record(hitsAt({ capacity: 100, after: 29, hits: 1 }))
  expect(counters.near_limit).toBe(0)
  counters.record(hitsAt({ capacity: 100, after: 30, hits: 1 }))
  expect(counters.near_limit).toBe(1)
})

test('hits denied by a limit that does not count them are all beyond it', () => {
  const decision = { admitted: false, remaining: 3, over: 5, capacity: 10 }
  const call = { ...decision, hits: 5, isShadow: false, isFromDenyCache: false }
  expect(countersOf(call)).toMatchObject({ total: 5, over: 5, near: 0, within: 0 })
})

const numbers = fc.oneof(fc.integer({ min: -5, max: 50 }), fc.integer({ min: 0, max: 2 ** 32 }))

test('for any decision, no counter decreases and no hit counts twice', () => {
  const calls = fc.record({
    hits: numbers,
    remaining: numbers,
    over: numbers,
    capacity: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 2 ** 32 })),
    admitted: fc.boolean(),
    isShadow: fc.boolean(),
    isFromDenyCache: fc.boolean(),
  })
  fc.assert(
    fc.property(calls, fc.double({ min: 0, max: 1, noNaN: true }), (call, ratio) => {
      const counters = new RuleCounters('d.k', ratio)
      counters.record(call)
      const { total_hits, within_limit, over_limit, near_limit, shadow_mode } = counters
      const { over_limit_with_local_cache } = counters
      const all = [within_limit, over_limit, near_limit, shadow_mode, over_limit_with_local_cache]
      for (const count of all) {
        expect(count).toBeGreaterThanOrEqual(0)
        expect(count).toBeLessThanOrEqual(total_hits)
      }
      expect(total_hits).toBe(Math.max(0, call.hits))
      expect(within_limit + over_limit).toBeLessThanOrEqual(total_hits)
      expect(near_limit + over_limit).toBeLessThanOrEqual(total_hits)
      expect(shadow_mode).toBeLessThanOrEqual(over_limit)
    }),
  )
})

test('in random histories of every algorithm, all hits are within or beyond the limit', () => {
  const steps = fc.array(
    fc.record({
      waitUs: fc.integer({ min: 0, max: 2_000_000 }),
      hits: fc.integer({ min: 0, max: 4 }),
    }),
    { maxLength: 40 },
  )
  const limits = fc.record({
    requests: fc.integer({ min: 1, max: 10 }),
    denyConsumes: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...algorithms),
      limits,
      steps,
      (algorithm, { requests, denyConsumes }, history) => {
        const limit = { requests, windowUs: 1_000_000, burst: requests, denyConsumes }
        const counters = new RuleCounters('d.k', RATIO)
        let state: CounterState | undefined
        let nowUs = 1_790_000_000_000_000
        let admittedHits = 0
        for (const { waitUs, hits } of history) {
          nowUs += waitUs
          const decision = algorithm.decide({ state, hits, nowUs, limit })
          state = decision.next ?? state
          if (decision.admitted) admittedHits += hits
          const flags = { isShadow: false, isFromDenyCache: false }
          counters.record({ ...decision, ...flags, hits, capacity: limit.burst })
        }
        expect(counters.within_limit).toBe(admittedHits)
        expect(counters.within_limit + counters.over_limit).toBeLessThanOrEqual(counters.total_hits)
        // Only a fixed window that counts denied hits splits a denied call.
        if (algorithm !== fixedWindow || !denyConsumes)
          expect(counters.within_limit + counters.over_limit).toBe(counters.total_hits)
      },
    ),
  )
})
