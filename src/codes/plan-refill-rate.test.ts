// The long-term claim rate, for headroomHours.
import { expect, test } from '@jest/globals'
import type { ClaimSample } from './claim-rate.ts'
import { addLongTermSample, sustainedRateOf } from './plan-refill-rate.ts'

/** Samples every 15 s of a pool with one claim every `everyS`. */
function sampleFor(seconds: number, everyS: number): ClaimSample[] {
  let samples: ClaimSample[] = []
  for (let atS = 0; atS <= seconds; atS += 15) {
    samples = addLongTermSample(samples, { atMs: atS * 1000, claimed: Math.floor(atS / everyS) })
  }
  return samples
}

test('the sustained rate is 0 over a few minutes or for one claim', () => {
  expect(sustainedRateOf([])).toBe(0)
  expect(sustainedRateOf(sampleFor(240, 10))).toBe(0)
  expect(sustainedRateOf(sampleFor(3600, 2000))).toBe(0)
})

test('the sustained rate approaches the rate from below', () => {
  const rate = sustainedRateOf(sampleFor(3600, 60))
  expect(rate).toBeLessThanOrEqual(1000 / 60)
  expect(rate).toBeGreaterThan(16)
})

test('addLongTermSample() keeps one sample per minute for three hours', () => {
  const samples = sampleFor(6 * 3600, 60)
  expect(samples.length).toBeLessThanOrEqual(182)
  expect((samples.at(-1)?.atMs ?? 0) - (samples[0]?.atMs ?? 0)).toBeLessThanOrEqual(3 * 3600_000)
})

test('the window, the spacing and the span are exact to the millisecond', () => {
  const HOURS_MS = 3 * 3600_000
  const add = (...times: number[]) =>
    times
      .reduce<ClaimSample[]>(
        (samples, atMs) => addLongTermSample(samples, { atMs, claimed: 0 }),
        [],
      )
      .map(({ atMs }) => atMs)
  expect(add(0, HOURS_MS - 1)).toEqual([0, HOURS_MS - 1])
  expect(add(0, HOURS_MS)).toEqual([HOURS_MS])
  expect(add(0, 60_000, 60_001)).toEqual([0, 60_000, 60_001])
  expect(add(0, 59_999, 60_001)).toEqual([0, 60_001])
  const minutes = [0, 60_000, 120_000, 180_000]
  expect(add(...minutes, 200_000, 220_000)).toEqual([...minutes, 220_000])
  const over = (ms: number) =>
    sustainedRateOf([
      { atMs: 0, claimed: 5 },
      { atMs: ms, claimed: 8 },
    ])
  expect([over(299_999), over(300_000)]).toEqual([0, 2000 / 300])
})

test('rates below one code per second count; no claims or a decrease give 0', () => {
  const rate = (blocks: number) =>
    sustainedRateOf([
      { atMs: 5_000_000, claimed: 100 },
      { atMs: 15_000_000, claimed: 100 + blocks },
    ])
  expect([rate(2), rate(1), rate(0), rate(-50)]).toEqual([0.1, 0, 0, 0])
})
