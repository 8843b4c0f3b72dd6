// Records the level of each pool at every read, and estimates when the pool will be empty.
import {
  addClaimSample,
  claimRateOf,
  type ClaimSample,
  secondsToEmpty,
} from '../codes/claim-rate.ts'
import { levelOf, type Pool } from '../codes/pool.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** State of a pool: levels in codes, the claim rate in codes per second. */
export interface PoolStatus extends ConfiguredMarks {
  readonly pool: string
  readonly level: number
  readonly claimRate: number
  /** `null` if the claim rate is 0. */
  readonly secondsToEmpty: number | null
}

/** Target and low-water mark of a pool, in codes; `null` if not configured. */
interface ConfiguredMarks {
  readonly lowWater: number | null
  readonly target: number | null
}

/** Reports the state of the pools of a store. */
export interface PoolReporter<P extends Pool> {
  /** Records rows that were just read. */
  readonly record: (rows: readonly P[]) => void
  /** Reads the pools, records them, and returns their state. Throws StoreError. */
  readonly report: () => Promise<readonly PoolStatus[]>
}

/** Creates the reporter of all pools of a store. */
export function createPoolReporter<P extends Pool>(deps: {
  readonly readPools: () => Promise<readonly P[]>
  readonly marksOf: (row: P) => ConfiguredMarks
  readonly metrics: Pick<Metrics, 'poolClaimed' | 'poolLevel' | 'poolLowWater'>
  readonly nowMs: Clock
}): PoolReporter<P> {
  const { metrics, marksOf } = deps
  const samples = new Map<string, ClaimSample[]>()
  const record = (rows: readonly P[]) => {
    for (const row of rows) {
      const { pool, claimed } = row
      samples.set(pool, addClaimSample(samples.get(pool) ?? [], { atMs: deps.nowMs(), claimed }))
      metrics.poolLevel.set({ pool }, levelOf(row))
      metrics.poolClaimed.set({ pool }, claimed)
      const { lowWater } = marksOf(row)
      if (lowWater !== null) metrics.poolLowWater.set({ pool }, lowWater)
    }
  }
  const statusOf = (row: P): PoolStatus => {
    const { lowWater, target } = marksOf(row)
    const level = levelOf(row)
    const claimRate = claimRateOf(samples.get(row.pool) ?? [])
    const left = secondsToEmpty(level, claimRate)
    return { pool: row.pool, level, lowWater, target, claimRate, secondsToEmpty: left }
  }
  return {
    record,
    async report() {
      const rows = await deps.readPools()
      record(rows)
      return rows.map(statusOf)
    },
  }
}
