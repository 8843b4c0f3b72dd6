// The total counts a limiter that has left until it could have reconnected.
import { expect, test } from '@jest/globals'
import { createLimiterCount, LIMITER_RECONNECT_MS as MS } from './limiter-count.ts'

test('a limiter that leaves counts until it could have reconnected', () => {
  const count = createLimiterCount()
  count.observe(2, 0)
  expect([count.total(0), count.nextChangeMs()]).toEqual([2, undefined])
  count.observe(1, 1000)
  expect([count.total(1000), count.nextChangeMs()]).toEqual([2, 1000 + MS])
  count.observe(1, 2000)
  expect([count.total(999 + MS), count.total(1000 + MS)]).toEqual([2, 1])
})

test('a limiter that returns is not counted twice', () => {
  const count = createLimiterCount()
  count.observe(2, 0)
  count.observe(1, 1000)
  count.observe(2, 2000)
  expect([count.total(2000), count.nextChangeMs()]).toEqual([2, undefined])
})

test('the total decreases in steps', () => {
  const count = createLimiterCount()
  count.observe(3, 0)
  count.observe(2, 1000)
  count.observe(0, 2000)
  const totals = [2000, 1000 + MS, 2000 + MS].map((ms) => count.total(ms))
  expect(totals).toEqual([3, 2, 0])
})
