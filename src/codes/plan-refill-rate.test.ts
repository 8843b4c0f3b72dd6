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
