// Pools of codes in SQLite, and the secret that generates them: created once, in the same database.
import { packCodes, unpackCodes } from '../../codes/block.ts'
import type { CodeStore } from '../../codes/code-store.ts'
import type { Pool } from '../../codes/pool.ts'
import type { Database } from './database.ts'
import { integerOf, type Row, stringOf } from './row.ts'

/** The pools of an open database. */
export function createSqliteCodeStore(db: Database): CodeStore {
  return {
    insertPoolIfAbsent: async (pool) => poolOf(await db.writer.run('insertPool', pool)),
    async readPoolSerial(pool) {
      const row = await db.writer.run('readPool', { pool })
      return row && poolOf(row)
    },
    async putBlock({ pool, seq, codes }) {
      await db.writer.run('putBlock', { pool, seq, codes: packCodes(codes) })
    },
    advanceMinted: async (change) => poolOf(await db.writer.run('advanceMinted', change)),
    claimNext: async (change) => poolOf(await db.writer.run('claimNext', change)),
    async readBlock(block) {
      const row = await db.writer.run('readBlock', block)
      return row && unpackCodes(stringOf(row['codes']))
    },
    async deleteBlock(block) {
      await db.writer.run('deleteBlock', block)
    },
  }
}

/** The secret of this name: `initial` if none exists. */
export async function insertSecretIfAbsent(
  db: Database,
  name: string,
  initial: Uint8Array,
): Promise<Uint8Array> {
  const row = await db.writer.run('insertSecret', { name, value: initial })
  const value = row?.['value']
  if (!(value instanceof Uint8Array)) throw new Error(`secret ${name} is missing`)
  return value
}

function poolOf(row: Row | undefined): Pool {
  return {
    pool: stringOf(row?.['pool']),
    poolNumber: integerOf(row?.['pool_number']),
    minted: integerOf(row?.['minted']),
    claimed: integerOf(row?.['claimed']),
    writerId: row?.['writer_id'] == null ? null : stringOf(row['writer_id']),
    secretFingerprint: stringOf(row?.['secret_fingerprint']),
  }
}
