// Pools of codes in SQLite, and the secret they are minted with: made once, kept beside them.
import { packCodes, unpackCodes } from '../../codes/block.ts'
import type { CodeStore } from '../../codes/code-store.ts'
import type { Pool } from '../../codes/pool.ts'
import type { Database } from './database.ts'
import { integerOf, type Row, textOf } from './row.ts'

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
      return row && unpackCodes(textOf(row['codes']))
    },
    async deleteBlock(block) {
      await db.writer.run('deleteBlock', block)
    },
  }
}

/** The secret of this name: `fresh` if there was none before. */
export async function keepSecret(
  db: Database,
  name: string,
  fresh: Uint8Array,
): Promise<Uint8Array> {
  const row = await db.writer.run('insertSecret', { name, value: fresh })
  const value = row?.['value']
  if (!(value instanceof Uint8Array)) throw new Error(`secret ${name} is not there`)
  return value
}

function poolOf(row: Row | undefined): Pool {
  return {
    pool: textOf(row?.['pool']),
    poolNumber: integerOf(row?.['pool_number']),
    minted: integerOf(row?.['minted']),
    claimed: integerOf(row?.['claimed']),
    writerId: row?.['writer_id'] == null ? null : textOf(row['writer_id']),
    secretFingerprint: textOf(row?.['secret_fingerprint']),
  }
}
