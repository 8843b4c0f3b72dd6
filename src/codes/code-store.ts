// Interface of a store of code pools. test/contract/code-store.ts tests every implementation.
import type { Pool } from './pool.ts'

/** Stores pools and their blocks. Pool rows change only by compare-and-set. */
export interface CodeStore {
  /** Creates the pool unless its name exists; resolves to the current row. */
  insertPoolIfAbsent(pool: { pool: string; secretFingerprint: string }): Promise<Pool>
  /** Serial read: the row after all writes in flight, even of unknown outcome, are decided. */
  readPoolSerial(pool: string): Promise<Pool | undefined>
  /** Writes a block; idempotent for the same codes. */
  putBlock(block: { pool: string; seq: number; codes: readonly string[] }): Promise<void>
  /** Sets `minted` to `to` if it equals `from`; resolves to the current row. */
  advanceMinted(change: { pool: string; from: number; to: number }): Promise<Pool>
  /** Claims block `from + 1` for `writerId` if `claimed` equals `from`; resolves to the row. */
  claimNext(change: { pool: string; from: number; writerId: string }): Promise<Pool>
  /** The codes of a block; `undefined` if the block does not exist. */
  readBlock(block: { pool: string; seq: number }): Promise<string[] | undefined>
  /** Deletes a claimed block; does nothing if the block does not exist. */
  deleteBlock(block: { pool: string; seq: number }): Promise<void>
}
