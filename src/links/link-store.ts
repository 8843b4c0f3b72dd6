// Interface of a link store. test/contract/link-store.ts tests every implementation. Faults of the
// store are StoreError; all other outcomes are return values.
import type { Link } from './link.ts'

/** Links by code. Every write is atomic, and durable once it resolves. */
export interface LinkStore {
  /** Stores `link` unless its code has a record; resolves to the stored record's `writerId`. */
  insertIfAbsent(link: Link): Promise<string>
  /** The read of the hot path: it observes every write that resolved before. */
  find(code: string): Promise<Link | undefined>
  /** Serial read: the record after all writes, even those of unknown outcome, are decided. */
  readSerial(code: string): Promise<Link | undefined>
  /** Disables (a time) or enables (`null`) a link; resolves to the new record, if any. */
  setDisabled(change: { code: string; disabledAtMs: number | null }): Promise<Link | undefined>
  /** Erases the target permanently; keeps code, writer and the time of the first erasure. */
  erase(change: { code: string; deletedAtMs: number }): Promise<Link | undefined>
}

/** The maximum number of records in a page of a scan. */
export const SCAN_PAGE_MAX = 1000

/** Selects a page of a scan. */
export interface ScanRange {
  /** The code of the last record of the previous page; `undefined` for the first page. */
  readonly after: string | undefined
  /** 1 to SCAN_PAGE_MAX. */
  readonly max: number
}

/** A store whose records can be read in pages. */
export interface ScannedStore {
  /**
   * Reads the records that come after the code `after` in the store's fixed order, at most `max`; a
   * page of fewer than `max` records is the last one. A record that exists during the whole scan is
   * returned exactly once. The record `after` may no longer exist.
   */
  scan(range: ScanRange): Promise<readonly Link[]>
}

/** A store without native expiry, whose expired records must be deleted. */
export interface SweptStore {
  /** Deletes at most `max` records that expired before `beforeMs`; resolves to their number. */
  deleteExpired(sweep: { beforeMs: number; max: number }): Promise<number>
}

/** A replicated store, for reads while no majority is available. */
export interface ReplicatedStore {
  /**
   * Reads from any one replica. A target that is found is valid, because targets never change. A
   * miss is not reliable, because the replica may lack recent writes.
   */
  findOnReplica(code: string): Promise<Link | undefined>
}
