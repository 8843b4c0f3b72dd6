// Who keeps a pool of codes filled, and how full, as it is written down with the pool. Never makes
// a pool, and never takes one from whom it was not told of.
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { repeatUnknown } from './repeat-unknown.ts'
import { type Row, wasApplied } from './row.ts'

const KEEP = `UPDATE code_pools SET owner = ?, low_water = ?, target = ? WHERE pool = ?`
/** A row that is not there has no number, so that the update makes none. */
const OWN_FREE = `${KEEP} IF owner = null AND pool_number >= 0`
const OWN_FROM = `${KEEP} IF owner = ?`

/** A claim to keep a pool. */
export interface PoolOwning {
  readonly pool: string
  readonly owner: string
  /** Who may stand there before us; `null` for nobody. */
  readonly replaces: string | null
  readonly lowWater: number
  readonly target: number
}

/** Writes down that `owner` keeps the pool; whether it does then. Throws StoreError. */
export async function ownPool(
  cassandra: CassandraSession,
  { pool, owner, replaces, lowWater, target }: PoolOwning,
): Promise<boolean> {
  const values = [owner, BigInt(lowWater), BigInt(target), pool]
  const update = async (from: string | null) => {
    const [row] =
      from === null
        ? await cassandra.execute('lwt', OWN_FREE, values)
        : await cassandra.execute('lwt', OWN_FROM, [...values, from])
    return wasApplied(row) ? 'ours' : ownerIn(row)
  }
  return repeatUnknown(async () => {
    // As ours first: so a try whose outcome was never learnt counts as done.
    const standing = await update(owner)
    if (standing === 'ours') return { done: true }
    const from = standing.owner ?? null
    if (from !== null && from !== replaces) return { done: false }
    const taken = await update(from)
    if (taken === 'ours') return { done: true }
    // Nobody's before and after, and still refused: there is no such pool.
    return from === null && taken.owner === undefined ? { done: false } : 'again'
  })
}

function ownerIn(row: Row | undefined): { readonly owner: string | undefined } {
  const owner: unknown = row?.['owner']
  if (owner != null && typeof owner !== 'string')
    throw new StoreError('the owner of a pool is no text', { outcome: 'not-done' })
  return { owner: owner ?? undefined }
}
