// Interface of a link store. test/contract/link-store.ts runs one suite on every one of them.
// Operating faults are StoreError (process/store-error.ts); all else is a return value.
import type { Link } from './link.ts'

/** Links by their codes. Every write is atomic and durable when it resolves. */
export interface LinkStore {
  /** Stores `link` unless its code has a record; resolves to the `writerId` that then stands. */
  insertIfAbsent(link: Link): Promise<string>
  /** The record as the hot path reads it: every write that resolved before is seen. */
  find(code: string): Promise<Link | undefined>
  /** The record after every write under way has been decided, also those of unknown outcome. */
  readSerial(code: string): Promise<Link | undefined>
  /** Disables (a time) or enables (`null`) a link; resolves to its record afterwards, if any. */
  setDisabled(change: { code: string; disabledAtMs: number | null }): Promise<Link | undefined>
  /** Erases the target for good and keeps the code and its writer; a first erasure's time stays. */
  erase(change: { code: string; deletedAtMs: number }): Promise<Link | undefined>
}

/** A store without expiry of its own, which must be swept. */
export interface SweptStore {
  /** Deletes up to `max` records that ended before `beforeMs`; resolves to how many it deleted. */
  deleteEnded(sweep: { beforeMs: number; max: number }): Promise<number>
}

/** A store of several replicas, for when no majority is available. */
export interface ReplicatedStore {
  /**
   * Reads from any one replica. A target in it is valid, because targets never change; but it may
   * be older than completed writes, so a miss is not reliable.
   */
  findOnReplica(code: string): Promise<Link | undefined>
}
