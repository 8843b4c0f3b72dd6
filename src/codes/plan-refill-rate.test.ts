// The rate by which headroom is judged.
import { expect, test } from '@jest/globals'
import type { PoolSight } from './claim-rate.ts'
import { addLongSight, sustainedRateOf } from './plan-refill-rate.ts'

/** Sights every 15 s, of a pool of which a block is claimed every `everyS`. */
function watch(seconds: number, everyS: number): PoolSight[] {
  let sights: PoolSight[] = []
  for (let atS = 0; atS <= seconds; atS += 15) {
    sights = addLongSight(sights, { atMs: atS * 1000, claimed: Math.floor(atS / everyS) })
  }
  return sights
}

test('it says nothing of a few minutes, nor of one claim', () => {
  expect(sustainedRateOf([])).toBe(0)
  expect(sustainedRateOf(watch(240, 10))).toBe(0)
  expect(sustainedRateOf(watch(3600, 2000))).toBe(0)
})

test('it comes near the rate from below', () => {
  const rate = sustainedRateOf(watch(3600, 60))
  expect(rate).toBeLessThanOrEqual(1000 / 60)
  expect(rate).toBeGreaterThan(16)
})

test('it keeps a sight a minute, for three hours', () => {
  const sights = watch(6 * 3600, 60)
  expect(sights.length).toBeLessThanOrEqual(182)
  expect((sights.at(-1)?.atMs ?? 0) - (sights[0]?.atMs ?? 0)).toBeLessThanOrEqual(3 * 3600_000)
})

test('the window, the spacing and the span hold to the millisecond', () => {
  const HOURS_MS = 3 * 3600_000
  const add = (...times: number[]) =>
    times
      .reduce<PoolSight[]>((sights, atMs) => addLongSight(sights, { atMs, claimed: 0 }), [])
      .map(({ atMs }) => atMs)
  expect(add(0, HOURS_MS - 1)).toEqual([0, HOURS_MS - 1])
  expect(add(0, HOURS_MS)).toEqual([HOURS_MS])
  expect(add(0, 60_000, 60_001)).toEqual([0, 60_000, 60_001])
  expect(add(0, 59_999, 60_001)).toEqual([0, 60_001])
  const over = (ms: number) =>
    sustainedRateOf([
      { atMs: 0, claimed: 5 },
      { atMs: ms, claimed: 8 },
    ])
  expect([over(299_999), over(300_000)]).toEqual([0, 2000 / 300])
})

test('less than a code a second is a rate; what was not claimed, or came back, is none', () => {
  const rate = (blocks: number) =>
    sustainedRateOf([
      { atMs: 0, claimed: 100 },
      { atMs: 10_000_000, claimed: 100 + blocks },
    ])
  expect([rate(2), rate(1), rate(0), rate(-50)]).toEqual([0.1, 0, 0, 0])
})
