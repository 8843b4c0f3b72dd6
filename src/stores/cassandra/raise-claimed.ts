// The conditional write that skips blocks of a pool.
import type { RaiseChange } from '../../codes/pool.ts'
import type { CassandraSession } from './client.ts'

const RAISE = `UPDATE code_pools SET claimed = ?, minted = ?, writer_id = ? WHERE pool = ?
  IF claimed = ? AND minted = ?`

/** Implements `raiseClaimed` of RaisePoolDeps. */
export async function raiseClaimed(
  cassandra: CassandraSession,
  { pool, from: { claimed, minted }, to, writerId }: RaiseChange,
): Promise<void> {
  const counters = [BigInt(to), BigInt(Math.max(to, minted))]
  const values = [...counters, writerId, pool, BigInt(claimed), BigInt(minted)]
  await cassandra.execute('lwt', RAISE, values)
}
