// What a store of code pools must do. test/contract/code-store.ts runs one suite on each of them.
import type { Pool } from './pool.ts'

/** Pools and their blocks. Rows of pools change only by compare-and-set. */
export interface CodeStore {
  /** Makes the pool unless there is one of this name; resolves to the row then there. */
  insertPoolIfAbsent(pool: { pool: string; secretFingerprint: string }): Promise<Pool>
  /** The row after every write under way has been decided, also those of unknown outcome. */
  readPoolSerial(pool: string): Promise<Pool | undefined>
  /** Writes a block; writing it again with the same codes changes nothing. */
  putBlock(block: { pool: string; seq: number; codes: readonly string[] }): Promise<void>
  /** Sets `minted` to `to` if it is `from`; resolves to the row then there. */
  advanceMinted(change: { pool: string; from: number; to: number }): Promise<Pool>
  /** Claims block `from + 1` for `writerId` if `claimed` is `from`; resolves as above. */
  claimNext(change: { pool: string; from: number; writerId: string }): Promise<Pool>
  /** The codes of a block, or `undefined` where it is not there. */
  readBlock(block: { pool: string; seq: number }): Promise<string[] | undefined>
  /** Forgets a block that was claimed; no fault where it is gone. */
  deleteBlock(block: { pool: string; seq: number }): Promise<void>
}
