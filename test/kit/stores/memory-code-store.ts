// Pools of codes in memory: for tests, and as the simplest reference for a code store.
import type { CodeStore } from '../../../src/codes/code-store.ts'
import type { Pool } from '../../../src/codes/pool.ts'

/** Creates a store without pools. */
export function createMemoryCodeStore(): CodeStore {
  const pools = new Map<string, Pool>()
  const blocks = new Map<string, readonly string[]>()
  const keyOf = ({ pool, seq }: { pool: string; seq: number }) => `${String(seq)} ${pool}`
  const rowOf = (name: string): Pool => {
    const row = pools.get(name)
    if (row === undefined) throw new Error(`unknown pool ${name}`)
    return row
  }
  const changeIf = (row: Pool, condition: boolean, to: Partial<Pool>) => {
    if (condition) pools.set(row.pool, { ...row, ...to })
    return Promise.resolve(rowOf(row.pool))
  }
  return {
    insertPoolIfAbsent({ pool, secretFingerprint }) {
      if (!pools.has(pool)) {
        const poolNumber = pools.size
        pools.set(pool, {
          pool,
          poolNumber,
          minted: 0,
          claimed: 0,
          writerId: null,
          secretFingerprint,
        })
      }
      return Promise.resolve(rowOf(pool))
    },
    readPoolSerial: (pool) => Promise.resolve(pools.get(pool)),
    putBlock({ pool, seq, codes }) {
      blocks.set(keyOf({ pool, seq }), codes)
      return Promise.resolve()
    },
    advanceMinted({ pool, from, to }) {
      const row = rowOf(pool)
      return changeIf(row, row.minted === from, { minted: to })
    },
    claimNext({ pool, from, writerId }) {
      const row = rowOf(pool)
      return changeIf(row, row.claimed === from && from < row.minted, {
        claimed: from + 1,
        writerId,
      })
    },
    readBlock(block) {
      const codes = blocks.get(keyOf(block))
      return Promise.resolve(codes && [...codes])
    },
    deleteBlock(block) {
      blocks.delete(keyOf(block))
      return Promise.resolve()
    },
  }
}
