// Watches pools: the level of each at every read, and how long it lasts.
import {
  addClaimSample,
  claimRateOf,
  type ClaimSample,
  secondsToEmpty,
} from '../codes/claim-rate.ts'
import { levelOf, type Pool } from '../codes/pool.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** State of a pool: levels in codes, the rate in codes a second. */
export interface PoolStatus extends ConfiguredMarks {
  readonly pool: string
  readonly level: number
  readonly claimRate: number
  /** `null` if nothing is claimed. */
  readonly secondsToEmpty: number | null
}

/** Target and low-water mark of a pool, in codes; `null` if not configured. */
interface ConfiguredMarks {
  readonly lowWater: number | null
  readonly target: number | null
}

/** Watched pools. */
export interface PoolWatch<P extends Pool> {
  /** Records rows that were just read. */
  readonly record: (rows: readonly P[]) => void
  /** Reads them and returns their current state. Throws StoreError. */
  readonly report: () => Promise<readonly PoolStatus[]>
}

/** Watches all pools of a store; their number is small. */
export function watchPools<P extends Pool>(deps: {
  readonly readPools: () => Promise<readonly P[]>
  readonly marksOf: (row: P) => ConfiguredMarks
  readonly metrics: Pick<Metrics, 'poolClaimed' | 'poolLevel' | 'poolLowWater'>
  readonly nowMs: Clock
}): PoolWatch<P> {
  const { metrics, marksOf } = deps
  const samplesOf = new Map<string, ClaimSample[]>()
  const record = (rows: readonly P[]) => {
    for (const row of rows) {
      const { pool, claimed } = row
      samplesOf.set(
        pool,
        addClaimSample(samplesOf.get(pool) ?? [], { atMs: deps.nowMs(), claimed }),
      )
      metrics.poolLevel.set({ pool }, levelOf(row))
      metrics.poolClaimed.set({ pool }, claimed)
      const { lowWater } = marksOf(row)
      if (lowWater !== null) metrics.poolLowWater.set({ pool }, lowWater)
    }
  }
  const statusOf = (row: P): PoolStatus => {
    const { lowWater, target } = marksOf(row)
    const level = levelOf(row)
    const claimRate = claimRateOf(samplesOf.get(row.pool) ?? [])
    return {
      pool: row.pool,
      level,
      lowWater,
      target,
      claimRate,
      secondsToEmpty: secondsToEmpty(level, claimRate),
    }
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
