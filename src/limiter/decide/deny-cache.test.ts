// The deny cache returns a denial as long as it is certain, for at most 1 s.
import { expect, test } from '@jest/globals'
import { fixedWindow } from '../../limits/fixed-window.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { createDenyCache } from './deny-cache.ts'

const limit = { requests: 5, windowUs: 60_000_000, burst: 5, denyConsumes: true }
const countOf = (key: string, hits = 1): CounterUpdate => ({
  key,
  algorithm: fixedWindow,
  limit,
  hits,
  veto: 'alone',
  isPerSecond: false,
})
const denial = (retryAfterUs: number) => ({
  admitted: false,
  remaining: 0,
  over: 1,
  resetUs: 30_000_000,
  retryAfterUs,
  next: undefined,
  expiresInUs: 0,
})
const NOW_US = 1_790_000_000_000_000

test('an entry expires at its retry time or after 1 s, and returns the remaining time', () => {
  const denied = createDenyCache(10_000)
  denied.store(countOf('long'), denial(30_000_000), NOW_US)
  denied.store(countOf('short'), denial(500), NOW_US)
  expect(denied.find(countOf('long'), NOW_US + 999_999)).toMatchObject({
    admitted: false,
    resetUs: 29_000_001,
    retryAfterUs: 29_000_001,
  })
  expect(denied.find(countOf('long'), NOW_US + 1_000_000)).toBeUndefined()
  expect(denied.find(countOf('short'), NOW_US + 499)).toBeDefined()
  expect(denied.find(countOf('short'), NOW_US + 500)).toBeUndefined()
})

test('a cached denial of several hits reports the hits that remain', () => {
  const denied = createDenyCache(10_000)
  denied.store(countOf('k', 3), { ...denial(1_000_000), remaining: 2 }, NOW_US)
  expect(denied.find(countOf('k', 3), NOW_US)).toMatchObject({ admitted: false, remaining: 2 })
  const lower = { ...countOf('k', 3), limit: { ...limit, requests: 4 } }
  expect(denied.find(lower, NOW_US)).toMatchObject({ admitted: false, remaining: 0 })
})

test('peeks, refunds and calls with fewer hits than the denied call go to the store', () => {
  const denied = createDenyCache(10_000)
  denied.store(countOf('k', 3), denial(1_000_000), NOW_US)
  for (const hits of [2, 1, 0, -1]) {
    expect(denied.find(countOf('k', hits), NOW_US)).toBeUndefined()
  }
  expect(denied.find(countOf('k', 3), NOW_US)).toBeDefined()
  expect(denied.find(countOf('k', 4), NOW_US)).toMatchObject({ over: 4 })
})

test('the store’s clock advances with the elapsed time', () => {
  const denied = createDenyCache(10_000)
  denied.store(countOf('k'), { ...denial(1_000_000), decidedAtUs: NOW_US + 60_000_000 }, NOW_US)
  expect(denied.find(countOf('k'), NOW_US + 7)?.decidedAtUs).toBe(NOW_US + 60_000_007)
})

test('a denied peek is not cached', () => {
  const denied = createDenyCache(10_000)
  denied.store(countOf('k', 0), denial(1_000_000), NOW_US)
  expect(denied.find(countOf('k'), NOW_US)).toBeUndefined()
})

test('is bounded and evicts the oldest denials', () => {
  const denied = createDenyCache(256 * 10)
  for (let n = 0; n < 1000; n++) denied.store(countOf(`k${n}`), denial(1_000_000), NOW_US)
  const found = Array.from({ length: 1000 }, (_, n) => denied.find(countOf(`k${n}`), NOW_US))
  expect(found.filter((decision) => decision !== undefined)).toHaveLength(10)
  expect(found[999]).toBeDefined()
  denied.clear()
  expect(denied.find(countOf('k999'), NOW_US)).toBeUndefined()
})

test.each([
  [0, 1],
  [256, 1],
  [511, 1],
  [512, 2],
])('%i bytes hold %i denials', (bytes, count) => {
  const denied = createDenyCache(bytes)
  for (const key of ['a', 'b', 'c']) denied.store(countOf(key), denial(1_000_000), NOW_US)
  const found = ['c', 'b', 'a'].map((key) => denied.find(countOf(key), NOW_US) !== undefined)
  expect(found).toEqual([true, count === 2, false])
})

test('the CPU time of store() does not grow with the size of the cache', () => {
  const denied = createDenyCache(256 * 20_000)
  const before = process.threadCpuUsage()
  for (let n = 0; n < 20_000; n++) denied.store(countOf(`k${n}`), denial(1_000_000), NOW_US)
  const { user } = process.threadCpuUsage(before)
  expect(user / 1000).toBeLessThan(1000) // a scan of all entries takes far longer
})
