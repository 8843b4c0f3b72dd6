// Pools of codes in Cassandra. Pool rows are changed only by conditional writes; blocks are written
// unconditionally, because every writer of a block writes the same content.
import { packCodes, POOL_NUMBERS, unpackCodes } from '../../codes/block.ts'
import type { CodeStore } from '../../codes/code-store.ts'
import type { Pool } from '../../codes/pool.ts'
import { OperatorError } from '../../process/role.ts'
import { resultOrFailed } from '../../resilience/retry-until-deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { retryUnknown } from './retry-unknown.ts'
import { integerOf, type Row, stringOf, uuidOf, wasApplied } from './row.ts'

const COLUMNS = 'pool, pool_number, minted, claimed, writer_id, secret_fingerprint, owner'
const READ_POOL = `SELECT ${COLUMNS} FROM code_pools WHERE pool = ?`
const READ_POOLS = `SELECT ${COLUMNS}, low_water, target FROM code_pools`
const UPDATE_TARGET = 'UPDATE code_pools SET target = ? WHERE pool = ? IF EXISTS'
const READ_NUMBERS = 'SELECT pool_number, pool FROM code_pool_numbers'
const TAKE_NUMBER = `INSERT INTO code_pool_numbers (pool_number, pool) VALUES (?, ?)
  IF NOT EXISTS`
const INSERT_POOL = `INSERT INTO code_pools
  (pool, pool_number, minted, claimed, secret_fingerprint) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS`
const ADVANCE_MINTED = 'UPDATE code_pools SET minted = ? WHERE pool = ? IF minted = ?'
const CLAIM = `UPDATE code_pools SET claimed = ?, writer_id = ? WHERE pool = ?
  IF claimed = ? AND minted > ?`
const PUT_BLOCK = 'INSERT INTO code_blocks (pool, seq, codes) VALUES (?, ?, ?)'
const READ_BLOCK = 'SELECT codes FROM code_blocks WHERE pool = ? AND seq = ?'
const DELETE_BLOCK = 'DELETE FROM code_blocks WHERE pool = ? AND seq = ?'

/** A pool with its recorded owner and fill levels; `null` if not recorded. */
export interface PoolRecord extends Pool {
  readonly owner: string | null
  readonly lowWater: number | null
  readonly target: number | null
}

/** Creates the store in a keyspace with the migrated schema. */
export function createCassandraCodeStore(cassandra: CassandraSession): CodeStore {
  cassandra.warmUp([READ_POOL, CLAIM, READ_BLOCK, DELETE_BLOCK])
  const readPoolSerial = async (pool: string) => {
    const [row] = await cassandra.execute('serial-read', READ_POOL, [pool])
    return row && poolOf(row)
  }
  const readExisting = async (pool: string) => requirePool(pool, await readPoolSerial(pool))
  return {
    insertPoolIfAbsent: (pool) => insertPoolIfAbsent(cassandra, pool, readPoolSerial),
    readPoolSerial,
    async putBlock({ pool, seq, codes }) {
      const blob = Buffer.from(packCodes(codes), 'latin1')
      await cassandra.execute('plain-write', PUT_BLOCK, [pool, BigInt(seq), blob])
    },
    async advanceMinted({ pool, from, to }) {
      const values = [BigInt(to), pool, BigInt(from)]
      const [row] = await cassandra.execute('lwt', ADVANCE_MINTED, values)
      if (!wasApplied(row)) return readExisting(pool)
      const after = await readAfter(cassandra, pool)
      return { ...after, minted: Math.max(after.minted, to) }
    },
    async claimNext({ pool, from, writerId }) {
      const values = [BigInt(from + 1), writerId, pool, BigInt(from), BigInt(from)]
      const [row] = await cassandra.execute('lwt', CLAIM, values)
      if (!wasApplied(row)) return readExisting(pool)
      // Reports this claim, even if other writers have claimed more since.
      return { ...(await readAfter(cassandra, pool)), claimed: from + 1, writerId }
    },
    async readBlock({ pool, seq }) {
      const [row] = await cassandra.execute('majority-read', READ_BLOCK, [pool, BigInt(seq)])
      const codes = row?.['codes']
      return Buffer.isBuffer(codes) ? unpackCodes(codes.toString('latin1')) : undefined
    },
    async deleteBlock({ pool, seq }) {
      await cassandra.execute('plain-write', DELETE_BLOCK, [pool, BigInt(seq)])
    },
  }
}

/** Every pool, in one query that returns every acknowledged write. Throws StoreError. */
export async function readPools(cassandra: CassandraSession): Promise<PoolRecord[]> {
  const rows = await cassandra.execute('scan', READ_POOLS)
  const pools = rows.map((row) => {
    const { owner, low_water: lowWater, target } = row
    const numberOf = (value: unknown) => (value == null ? null : integerOf(value))
    return {
      ...poolOf(row),
      owner: owner == null ? null : stringOf(owner),
      lowWater: numberOf(lowWater),
      target: numberOf(target),
    }
  })
  return pools.sort((one, other) => one.poolNumber - other.poolNumber)
}

/** Records the level to which a pool is filled, for reports. Throws StoreError. */
export async function storeTargetLevel(
  cassandra: CassandraSession,
  { pool, target }: { pool: string; target: number },
): Promise<void> {
  const values = [BigInt(target), pool]
  await retryUnknown(async () => {
    await cassandra.execute('lwt', UPDATE_TARGET, values)
    return { done: undefined }
  })
}

/** Re-reads a row after a change. On failure the outcome is unknown to the caller. */
async function readAfter(cassandra: CassandraSession, pool: string): Promise<Pool> {
  const read = async (kind: 'majority-read' | 'serial-read') => {
    const [row] = await cassandra.execute(kind, READ_POOL, [pool])
    return requirePool(pool, row && poolOf(row))
  }
  const found = await resultOrFailed(read('majority-read'))
  if (found !== 'failed') return found
  try {
    return await read('serial-read') // longer deadline: a successful claim should not be lost
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause
    throw new StoreError('a pool was changed but not re-read', { outcome: 'unknown', cause })
  }
}

function requirePool(name: string, pool: Pool | undefined): Pool {
  if (pool === undefined) throw new Error(`unknown pool ${name}`)
  return pool
}

async function insertPoolIfAbsent(
  cassandra: CassandraSession,
  { pool, secretFingerprint }: { pool: string; secretFingerprint: string },
  readPoolSerial: (pool: string) => Promise<Pool | undefined>,
): Promise<Pool> {
  const found = await readPoolSerial(pool)
  if (found !== undefined) return found
  const poolNumber = await takeNumber(cassandra, pool)
  return retryUnknown(async () => {
    const existing = await readPoolSerial(pool)
    if (existing !== undefined) return { done: existing }
    const values = [pool, poolNumber, 0n, 0n, secretFingerprint]
    const [row] = await cassandra.execute('lwt', INSERT_POOL, values)
    if (!wasApplied(row)) return 'retry'
    const created = { pool, poolNumber, minted: 0, claimed: 0, writerId: null, secretFingerprint }
    return { done: created }
  })
}

/**
 * Reserves the number of a pool, permanently. Numbers are tried in ascending order and never freed,
 * so that concurrent or restarted attempts for the same pool get the same number. Throws
 * OperatorError if none is left.
 */
export async function takeNumber(cassandra: CassandraSession, pool: string): Promise<number> {
  const rows = await cassandra.execute('scan', READ_NUMBERS)
  const owners = new Map(rows.map((row) => [integerOf(row['pool_number']), stringOf(row['pool'])]))
  for (let number = 0; number < POOL_NUMBERS; number++) {
    const take = async () => {
      const [row] = await cassandra.execute('lwt', TAKE_NUMBER, [number, pool])
      return { done: wasApplied(row) ? pool : stringOf(row?.['pool']) } // the pool that has it
    }
    const owner = owners.get(number) ?? (await retryUnknown(take))
    if (owner === pool) return number
  }
  throw new OperatorError(
    `pool ${pool} cannot be created: a keyspace has at most ${POOL_NUMBERS} pools in its lifetime`,
  )
}

function poolOf(row: Row): Pool {
  return {
    pool: stringOf(row['pool']),
    poolNumber: integerOf(row['pool_number']),
    minted: integerOf(row['minted']),
    claimed: integerOf(row['claimed']),
    writerId: uuidOf(row['writer_id']),
    secretFingerprint: stringOf(row['secret_fingerprint']),
  }
}
