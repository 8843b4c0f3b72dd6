// Records in a pool's row which owner keeps the pool filled, and its fill levels. Never creates a
// pool, and replaces only the expected owner.
import type { CassandraSession } from './client.ts'
import { retryUnknown } from './retry-unknown.ts'
import { stringOf, wasApplied } from './row.ts'

const SET_OWNER = `UPDATE code_pools SET owner = ?, low_water = ?, target = ? WHERE pool = ?`
/** A missing row has no number, so the condition fails and the update creates no row. */
const OWN_FREE = `${SET_OWNER} IF owner = null AND pool_number >= 0`
const OWN_FROM = `${SET_OWNER} IF owner = ?`

/** A request to become a pool's owner. */
export interface PoolOwnership {
  readonly pool: string
  readonly owner: string
  /** The owner that may be replaced; `null`: none. */
  readonly replaces: string | null
  readonly lowWater: number
  readonly target: number
}

/** Records `owner` as the pool's owner; resolves to whether it is. Throws StoreError. */
export async function ownPool(
  cassandra: CassandraSession,
  { pool, owner, replaces, lowWater, target }: PoolOwnership,
): Promise<boolean> {
  const values = [owner, BigInt(lowWater), BigInt(target), pool]
  const update = async (from: string | null) => {
    const [row] =
      from === null
        ? await cassandra.execute('lwt', OWN_FREE, values)
        : await cassandra.execute('lwt', OWN_FROM, [...values, from])
    const recorded = row?.['owner'] ?? null
    return { isOwned: wasApplied(row), owner: recorded === null ? null : stringOf(recorded) }
  }
  return retryUnknown(async () => {
    // First with `owner` as the expected owner: an earlier attempt may have recorded it.
    const current = await update(owner)
    if (current.isOwned) return { done: true }
    const from = current.owner
    if (from !== null && from !== replaces) return { done: false }
    const replaced = await update(from)
    if (replaced.isOwned) return { done: true }
    // No owner before and after, and still not applied: the pool does not exist.
    return from === null && replaced.owner === null ? { done: false } : 'retry'
  })
}
