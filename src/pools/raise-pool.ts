// Skips blocks of a pool after a restore from a backup: links use the blocks that were
// claimed after the backup, but the restored pool counts these blocks as unclaimed. Can be retried,
// and killed at any time; concurrent claims, refills and other runs are safe.
import { randomUUID } from 'node:crypto'
import type { CodeStore } from '../codes/code-store.ts'
import type { Pool, RaiseChange } from '../codes/pool.ts'

/** Dependencies. */
export interface RaisePoolDeps {
  readonly codes: Pick<CodeStore, 'readPoolSerial'>
  /**
   * Sets `claimed` to `to`, and `minted` to at least `to`, if the row's counters are still
   * those of `from`. Throws StoreError.
   */
  readonly raiseClaimed: (change: RaiseChange) => Promise<void>
  /** Creates a unique id: no claim has the same one. @default randomUUID */
  readonly newWriterId?: () => string
}

/** Maximum number of attempts. One fails only if another process has changed the counters. */
const ATTEMPTS_MAX = 100

/**
 * Raises `claimed` of a pool to at least `to`; resolves to the counters before and after. Throws
 * StoreError, after which it can be retried.
 */
export async function raisePool(
  { codes, raiseClaimed, newWriterId = randomUUID }: RaisePoolDeps,
  { pool, to }: { readonly pool: string; readonly to: number },
): Promise<{ readonly before: Pool; readonly after: Pool }> {
  let before: Pool | undefined
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const row = await codes.readPoolSerial(pool)
    if (row === undefined) throw new Error(`unknown pool ${pool}`)
    before ??= row
    if (row.claimed >= to) return { before, after: row }
    await raiseClaimed({ pool, from: row, to, writerId: newWriterId() })
  }
  throw new Error(
    `pool ${pool} not raised: its counters changed in each of ${ATTEMPTS_MAX} attempts`,
  )
}
