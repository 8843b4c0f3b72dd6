// What is reported of a pool: its level, its marks, and how long it will last.
import { expect, test } from '@jest/globals'
import type { Pool } from '../codes/pool.ts'
import { createMetrics } from '../process/metrics.ts'
import { watchPool } from './watch-pool.ts'

function watched() {
  const metrics = createMetrics()
  const clock = { nowMs: 0 }
  const none = { writerId: null, secretFingerprint: 'f' }
  const row: Pool = { pool: 'p', poolNumber: 0, minted: 40, claimed: 0, ...none }
  const seen: { row: Pool | undefined } = { row }
  const watch = watchPool({
    pool: 'p',
    marks: { lowWater: 20_000, target: 40_000 },
    readPool: () => Promise.resolve(seen.row),
    refill: () => Promise.resolve(row),
    metrics,
    nowMs: () => clock.nowMs,
  })
  return { watch, clock, seen, row, metrics }
}

test('a pool of which nothing is claimed lasts for ever', async () => {
  const { watch } = watched()
  expect(await watch.report()).toEqual({
    pool: 'p',
    level: 40_000,
    lowWater: 20_000,
    target: 40_000,
    claimRate: 0,
    secondsToEmpty: null,
  })
})

test('the rate is seen from one sight to the next, a refill being one', async () => {
  const { watch, clock, seen, row } = watched()
  await watch.refill()
  clock.nowMs += 100_000
  seen.row = { ...row, claimed: 10 }
  expect(await watch.report()).toMatchObject({ level: 30_000, claimRate: 100, secondsToEmpty: 300 })
})

test('level and low water are metrics', async () => {
  const { watch, metrics } = watched()
  await watch.refill()
  const series = (value: number) => [{ labels: { pool: 'p' }, value }]
  expect((await metrics.poolLevel.get()).values).toEqual(series(40_000))
  expect((await metrics.poolLowWater.get()).values).toEqual(series(20_000))
})

test('a pool that is not there is a defect', async () => {
  const { watch, seen } = watched()
  seen.row = undefined
  await expect(watch.report()).rejects.toThrow('there is no pool p')
})
