// What was denied is remembered for as long as it is certain, a second at most.
import { expect, test } from '@jest/globals'
import { fixedWindow } from '../../limits/fixed-window.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'
import { createDenyCache } from './deny-cache.ts'

const limit = { requests: 5, windowUs: 60_000_000, burst: 5, denyConsumes: true }
const chargeOf = (key: string, cost = 1): CounterCharge => ({
  key,
  algorithm: fixedWindow,
  limit,
  cost,
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

test('a denial is remembered for its wait, a second at most, with the times that are left', () => {
  const denied = createDenyCache(10_000)
  denied.note(chargeOf('long'), denial(30_000_000), NOW_US)
  denied.note(chargeOf('short'), denial(500), NOW_US)
  expect(denied.find(chargeOf('long'), NOW_US + 999_999)).toMatchObject({
    admitted: false,
    resetUs: 29_000_001,
    retryAfterUs: 29_000_001,
  })
  expect(denied.find(chargeOf('long'), NOW_US + 1_000_000)).toBeUndefined()
  expect(denied.find(chargeOf('short'), NOW_US + 499)).toBeDefined()
  expect(denied.find(chargeOf('short'), NOW_US + 500)).toBeUndefined()
})

test('fewer hits than were denied, a look and hits given back are asked of the store', () => {
  const denied = createDenyCache(10_000)
  denied.note(chargeOf('k', 3), denial(1_000_000), NOW_US)
  for (const cost of [2, 1, 0, -1]) {
    expect(denied.find(chargeOf('k', cost), NOW_US)).toBeUndefined()
  }
  expect(denied.find(chargeOf('k', 3), NOW_US)).toBeDefined()
  expect(denied.find(chargeOf('k', 4), NOW_US)).toMatchObject({ over: 4 })
})

test('the time of the store’s clock follows the time that has passed', () => {
  const denied = createDenyCache(10_000)
  denied.note(chargeOf('k'), { ...denial(1_000_000), decidedAtUs: NOW_US + 60_000_000 }, NOW_US)
  expect(denied.find(chargeOf('k'), NOW_US + 7)?.decidedAtUs).toBe(NOW_US + 60_000_007)
})

test('a denied look is not remembered', () => {
  const denied = createDenyCache(10_000)
  denied.note(chargeOf('k', 0), denial(1_000_000), NOW_US)
  expect(denied.find(chargeOf('k'), NOW_US)).toBeUndefined()
})

test('it is bounded, and forgets what was denied longest ago', () => {
  const denied = createDenyCache(256 * 10)
  for (let n = 0; n < 1000; n++) denied.note(chargeOf(`k${n}`), denial(1_000_000), NOW_US)
  const held = Array.from({ length: 1000 }, (_, n) => denied.find(chargeOf(`k${n}`), NOW_US))
  expect(held.filter((decision) => decision !== undefined)).toHaveLength(10)
  expect(held[999]).toBeDefined()
  denied.clear()
  expect(denied.find(chargeOf('k999'), NOW_US)).toBeUndefined()
})

test.each([
  [0, 1],
  [256, 1],
  [511, 1],
  [512, 2],
])('of %i bytes it holds %i denials', (bytes, count) => {
  const denied = createDenyCache(bytes)
  for (const key of ['a', 'b', 'c']) denied.note(chargeOf(key), denial(1_000_000), NOW_US)
  const held = ['c', 'b', 'a'].map((key) => denied.find(chargeOf(key), NOW_US) !== undefined)
  expect(held).toEqual([true, count === 2, false])
})

test('what it costs does not grow with what it holds', () => {
  const denied = createDenyCache(256 * 20_000)
  const begunMs = performance.now()
  for (let n = 0; n < 20_000; n++) denied.note(chargeOf(`k${n}`), denial(1_000_000), NOW_US)
  expect(performance.now() - begunMs).toBeLessThan(1000) // looking through all takes far longer
})
