// Watches pools: the level of each at every read, and how long it will last.
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
export interface PoolStanding extends PoolGoals {
  readonly pool: string
  readonly level: number
  readonly claimRate: number
  /** `null` if nothing is claimed. */
  readonly secondsToEmpty: number | null
}

/** Target and low-water mark of a pool, in codes; `null` if not configured. */
interface PoolGoals {
  readonly lowWater: number | null
  readonly target: number | null
}

/** Watched pools. */
export interface PoolWatch<P extends Pool> {
  /** Records rows that were just read. */
  readonly see: (rows: readonly P[]) => void
  /** Reads them and returns their current state. Throws StoreError. */
  readonly report: () => Promise<readonly PoolStanding[]>
}

/** Watches all the pools of a store, of which there are few. */
export function watchPools<P extends Pool>(deps: {
  readonly readPools: () => Promise<readonly P[]>
  readonly marksOf: (row: P) => PoolGoals
  readonly metrics: Pick<Metrics, 'poolClaimed' | 'poolLevel' | 'poolLowWater'>
  readonly nowMs: Clock
}): PoolWatch<P> {
  const { metrics, marksOf } = deps
  const sightsOf = new Map<string, ClaimSample[]>()
  const see = (rows: readonly P[]) => {
    for (const row of rows) {
      const { pool, claimed } = row
      sightsOf.set(pool, addClaimSample(sightsOf.get(pool) ?? [], { atMs: deps.nowMs(), claimed }))
      metrics.poolLevel.set({ pool }, levelOf(row))
      metrics.poolClaimed.set({ pool }, claimed)
      const { lowWater } = marksOf(row)
      if (lowWater !== null) metrics.poolLowWater.set({ pool }, lowWater)
    }
  }
  const standingOf = (row: P): PoolStanding => {
    const { lowWater, target } = marksOf(row)
    const level = levelOf(row)
    const claimRate = claimRateOf(sightsOf.get(row.pool) ?? [])
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
    see,
    async report() {
      const rows = await deps.readPools()
      see(rows)
      return rows.map(standingOf)
    },
  }
}
