// The reported status of a pool: its level, its marks, and how long it will last.
import { expect, test } from '@jest/globals'
import type { Pool } from '../codes/pool.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createPoolReporter } from './pool-reporter.ts'

function createReporter() {
  const metrics = createMetrics()
  const clock = { nowMs: 0 }
  const none = { writerId: null, secretFingerprint: 'f' }
  const row: Pool = { pool: 'p', poolNumber: 0, minted: 40, claimed: 0, ...none }
  const source: {
    rows: Pool[]
    marks: { lowWater: number | null; target: number | null }
  } = { rows: [row], marks: { lowWater: 20_000, target: 40_000 } }
  const reporter = createPoolReporter({
    readPools: () => Promise.resolve(source.rows),
    marksOf: () => source.marks,
    metrics,
    nowMs: () => clock.nowMs,
  })
  return { reporter, clock, source, row, metrics }
}

test('a pool without claims never becomes empty', async () => {
  const { reporter } = createReporter()
  expect(await reporter.report()).toEqual([
    {
      pool: 'p',
      level: 40_000,
      lowWater: 20_000,
      target: 40_000,
      claimRate: 0,
      secondsToEmpty: null,
    },
  ])
})

test('the rate is measured between two samples; a report adds a sample', async () => {
  const { reporter, clock, source, row } = createReporter()
  reporter.record([row])
  clock.nowMs += 100_000
  source.rows = [{ ...row, claimed: 10 }]
  expect(await reporter.report()).toMatchObject([
    { level: 30_000, claimRate: 100, secondsToEmpty: 300 },
  ])
})

test('each pool has its own rate', async () => {
  const { reporter, clock, source, row } = createReporter()
  reporter.record([row, { ...row, pool: 'q', claimed: 20 }])
  clock.nowMs += 100_000
  source.rows = [row, { ...row, pool: 'q', claimed: 30 }]
  expect(await reporter.report()).toMatchObject([
    { pool: 'p', claimRate: 0 },
    { pool: 'q', claimRate: 100 },
  ])
})

test('the level and the low-water mark are exported as metrics', async () => {
  const { reporter, metrics, row } = createReporter()
  reporter.record([row])
  const series = (value: number) => [{ labels: { pool: 'p' }, value }]
  expect((await metrics.poolLevel.get()).values).toEqual(series(40_000))
  expect((await metrics.poolLowWater.get()).values).toEqual(series(20_000))
  expect((await metrics.poolClaimed.get()).values).toEqual(series(0))
})

test('a pool without a configured target has no marks', async () => {
  const { reporter, source, metrics } = createReporter()
  source.marks = { lowWater: null, target: null }
  expect(await reporter.report()).toMatchObject([{ level: 40_000, lowWater: null, target: null }])
  expect((await metrics.poolLowWater.get()).values).toEqual([])
})
