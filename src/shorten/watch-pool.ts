// Watches one pool: keeps it filled where this process mints, and reports how long it will last.
import { addSight, claimRateOf, type PoolSight, secondsToEmpty } from '../codes/claim-rate.ts'
import { levelOf, type Pool, type PoolMarks } from '../codes/pool.ts'
import type { Clock } from '../process/deadline.ts'
import type { Metrics } from '../process/metrics.ts'

/** How a pool stands: levels in codes, the rate in codes a second. */
export interface PoolStanding {
  readonly pool: string
  readonly level: number
  readonly lowWater: number
  readonly target: number
  readonly claimRate: number
  /** `null` where nothing is being claimed. */
  readonly secondsToEmpty: number | null
}

/** A pool under watch. */
export interface PoolWatch {
  /** Refills the pool if it is low. Throws what refilling throws. */
  readonly refill: () => Promise<void>
  /** How it stands now. Throws StoreError. */
  readonly report: () => Promise<PoolStanding>
}

/** Watches a pool by its row. */
export function watchPool(deps: {
  readonly pool: string
  readonly marks: PoolMarks
  readonly readPool: () => Promise<Pool | undefined>
  readonly refill: () => Promise<Pool>
  readonly metrics: Pick<Metrics, 'poolLevel' | 'poolLowWater'>
  readonly nowMs: Clock
}): PoolWatch {
  const { pool, marks, metrics } = deps
  let sights: PoolSight[] = []
  const see = (row: Pool) => {
    sights = addSight(sights, { atMs: deps.nowMs(), claimed: row.claimed })
    metrics.poolLevel.set({ pool }, levelOf(row))
  }
  metrics.poolLowWater.set({ pool }, marks.lowWater)
  return {
    async refill() {
      see(await deps.refill())
    },
    async report() {
      const row = await deps.readPool()
      if (row === undefined) throw new Error(`there is no pool ${pool}`)
      see(row)
      const level = levelOf(row)
      const claimRate = claimRateOf(sights)
      const secondsLeft = secondsToEmpty(level, claimRate)
      return { pool, level, ...marks, claimRate, secondsToEmpty: secondsLeft }
    },
  }
}
