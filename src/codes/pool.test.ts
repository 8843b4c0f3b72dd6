// The level of a pool, refill sizes, the claim rate, and the fingerprint of a secret.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { BLOCK_SIZE, SEQ_MAX } from './block.ts'
import {
  addClaimSample,
  claimRateOf,
  type ClaimSample,
  RATE_WINDOW_MS,
  secondsToEmpty,
} from './claim-rate.ts'
import { fingerprintOf, levelOf, planRefill } from './pool.ts'

test.each([
  [{ minted: 0, claimed: 0 }, 40],
  [{ minted: 19, claimed: 0 }, 21],
  [{ minted: 20, claimed: 0 }, 0],
  [{ minted: 21, claimed: 0 }, 0],
  [{ minted: 100, claimed: 81 }, 21],
  [{ minted: 100, claimed: 100 }, 40],
  [{ minted: SEQ_MAX - 3, claimed: SEQ_MAX - 3 }, 3],
  [{ minted: SEQ_MAX, claimed: SEQ_MAX }, 0],
])('planRefill(%j) mints %i blocks', (pool, blocks) => {
  expect(planRefill(pool, { lowWater: 20_000, target: 40_000 })).toBe(blocks)
})

test('planRefill() reaches the target within one block, or mints nothing', () => {
  const pools = fc
    .nat({ max: 1e6 })
    .chain((minted) => fc.record({ minted: fc.constant(minted), claimed: fc.nat({ max: minted }) }))
  const marks = fc.record({ lowWater: fc.nat({ max: 1e7 }), target: fc.nat({ max: 1e7 }) })
  fc.assert(
    fc.property(pools, marks, (pool, { lowWater, target }) => {
      const blocks = planRefill(pool, { lowWater, target })
      const level = levelOf({ ...pool, minted: pool.minted + blocks })
      if (levelOf(pool) >= lowWater || levelOf(pool) >= target) expect(blocks).toBe(0)
      else expect([level >= target, level < target + BLOCK_SIZE]).toEqual([true, true])
    }),
  )
})

test('the claim rate is codes per second between the first and the last sample', () => {
  const samples = [
    { atMs: 0, claimed: 10 },
    { atMs: 60_000, claimed: 11 },
    { atMs: 120_000, claimed: 22 },
  ]
  expect(claimRateOf(samples)).toBe(100)
  expect(claimRateOf([])).toBe(0)
  expect(claimRateOf(samples.slice(0, 1))).toBe(0)
  expect(claimRateOf([samples[0] ?? { atMs: 0, claimed: 0 }, { atMs: 0, claimed: 99 }])).toBe(0)
})

test('a block claimed within a second does not inflate the rate', () => {
  const samples = [
    { atMs: 0, claimed: 0 },
    { atMs: 100, claimed: 1 },
  ]
  expect(claimRateOf(samples)).toBeCloseTo(1000 / 60)
})

test('samples outside the window are dropped, and their number is bounded', () => {
  let samples: ClaimSample[] = []
  for (let i = 0; i < 10_000; i++) samples = addClaimSample(samples, { atMs: i * 1000, claimed: i })
  const last = 9_999_000
  expect(samples.at(-1)?.atMs).toBe(last)
  expect(samples.every(({ atMs }) => atMs > last - RATE_WINDOW_MS)).toBe(true)
  expect(samples.length).toBeLessThanOrEqual(256)
  expect(claimRateOf(samples)).toBe(1000)
  samples = addClaimSample(samples, { atMs: last + RATE_WINDOW_MS, claimed: 10_000 })
  expect(samples).toHaveLength(1)
})

test('the newest 256 samples are kept; one exactly as old as the window is dropped', () => {
  let samples: ClaimSample[] = []
  for (let i = 0; i < 256; i++) samples = addClaimSample(samples, { atMs: i, claimed: i })
  expect([samples.length, samples[0]?.atMs]).toEqual([256, 0])
  samples = addClaimSample(samples, { atMs: 256, claimed: 256 })
  expect([samples.length, samples[0]?.atMs, samples.at(-1)?.atMs]).toEqual([256, 1, 256])
  const old = { atMs: 0, claimed: 0 }
  expect(addClaimSample([old], { atMs: RATE_WINDOW_MS - 1, claimed: 1 })).toHaveLength(2)
  expect(addClaimSample([old], { atMs: RATE_WINDOW_MS, claimed: 1 })).toHaveLength(1)
})

test('a clock that was set back gives 0; a rate may be below one code per second', () => {
  const rate = (atMs: number) =>
    claimRateOf([
      { atMs: 10_000_000, claimed: 0 },
      { atMs, claimed: 1 },
    ])
  expect([rate(9_000_000), rate(10_000_000), rate(12_000_000)]).toEqual([0, 0, 0.5])
  expect([secondsToEmpty(1000, 0.5), secondsToEmpty(1, 0.0625)]).toEqual([2000, 16])
})

test('secondsToEmpty() returns whole seconds, null without claims', () => {
  expect(secondsToEmpty(1000, 3)).toBe(333)
  expect(secondsToEmpty(0, 3)).toBe(0)
  expect(secondsToEmpty(1000, 0)).toBeNull()
  expect(secondsToEmpty(1000, -1)).toBeNull()
})

test('a fingerprint is unique to its secret and never changes', () => {
  const secret = Uint8Array.from({ length: 32 }, (_, i) => i)
  expect(fingerprintOf(secret)).toBe('18442fd42fe86661bd66258dd398579a')
  expect(fingerprintOf(secret.with(31, 0))).not.toBe(fingerprintOf(secret))
})
