// The lifetime of a cache entry: an hour with jitter, never beyond the link's expiry.
import { expect, test } from '@jest/globals'
import { lifeMsOf, NEGATIVE_MS } from './link-cache.ts'

const NOW = 1_000_000
const HOUR_MS = 3_600_000
const entry = { code: 'code', lease: 'lease', nowMs: NOW }

const lifeMs = (leftMs: number | null, random: number) => {
  const expiresAtMs = leftMs === null ? null : NOW + leftMs
  const target = { longUrl: 'https://example.com/', expiresAtMs }
  return lifeMsOf({ ...entry, target }, () => random)
}

test('an entry lives 54 to 66 minutes', () => {
  expect([0, 0.5].map((random) => lifeMs(null, random) / HOUR_MS)).toEqual([0.9, 1])
  expect(lifeMs(null, 1)).toBeCloseTo(1.1 * HOUR_MS, -1)
})

test('an entry never outlives its link', () => {
  expect(lifeMs(1, 1)).toBe(1)
  expect(lifeMs(2 * HOUR_MS, 0.5)).toBe(HOUR_MS)
})

test.each([0, -1])('an entry of a link that expires in %d ms is negative', (leftMs) => {
  expect(lifeMs(leftMs, 0)).toBe(NEGATIVE_MS)
})

test('a negative entry lives one minute', () => {
  expect(lifeMsOf({ ...entry, target: undefined }, () => 0)).toBe(60_000)
})
