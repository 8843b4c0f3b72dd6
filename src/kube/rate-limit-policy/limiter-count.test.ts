// Limiters that have left recently count, so that one that reconnects soon changes no number.
import { expect, test } from '@jest/globals'
import {
  createLimiterCount,
  LIMITER_ABSENCE_MS as ABSENT_MS,
  LIMITER_RECONNECT_MS as MS,
} from './limiter-count.ts'

const versions = (...all: readonly number[]) =>
  all.map((version) => ({ version, isRejecting: false }))

test('a limiter that leaves counts until it could have reconnected', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1), 0)
  expect([count.total(0), count.nextChangeMs(0)]).toEqual([2, undefined])
  count.observe(versions(1), 1000)
  expect(count.total(1000)).toBe(2)
  count.observe(versions(1), 2000)
  expect([count.total(999 + MS), count.total(1000 + MS)]).toEqual([2, 1])
  expect(count.nextChangeMs(50_000)).toBe(1000 + MS)
})

test('a limiter that returns is not counted twice', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1), 0)
  count.observe(versions(1), 1000)
  count.observe(versions(1, 1), 2000)
  expect([count.total(2000), count.active(1, 2000)]).toEqual([2, 2])
})

test('the total decreases in steps', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1, 1), 0)
  count.observe(versions(1, 1), 1000)
  count.observe([], 2000)
  const totals = [2000, 1000 + MS, 2000 + MS].map((ms) => count.total(ms))
  expect(totals).toEqual([3, 2, 0])
})

test('a limiter that disconnects is active for a while, with the version that it had', () => {
  const count = createLimiterCount()
  count.observe(versions(5, 3), 0)
  count.observe(versions(5), 60_000)
  const activeAt = (ms: number) => [3, 4].map((since) => count.active(since, ms))
  expect(activeAt(60_000 + ABSENT_MS - 1)).toEqual([2, 1])
  const endMs = count.nextChangeMs(60_000) ?? 0
  expect(endMs).toBeLessThanOrEqual(60_000 + ABSENT_MS + 1000)
  expect(activeAt(endMs)).toEqual([1, 1])
})

test('a limiter that reconnects without rules every few seconds stays active', () => {
  const count = createLimiterCount()
  const active = new Set<number>()
  for (let ms = 0; ms < 600_000; ms += 500) {
    count.observe([versions(7, 7), versions(7), versions(7, 0)][(ms / 500) % 3] ?? [], ms)
    active.add(count.active(7, ms))
    expect(count.active(7, ms)).toBeLessThanOrEqual(count.total(ms))
  }
  expect([...active]).toEqual([2])
})

test('a limiter that rejects rules stays known as such, for policies that it does not have', () => {
  const count = createLimiterCount()
  count.observe([...versions(4), { version: 2, isRejecting: true }], 0)
  count.observe(versions(4), 1000)
  const isRejectingAt = (ms: number) => [2, 3].map((since) => count.isRejecting(since, ms))
  expect(isRejectingAt(MS - 1)).toEqual([false, true])
  expect(isRejectingAt(MS)).toEqual([false, false])
})
