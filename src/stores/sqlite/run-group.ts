// Runs one group of writes as one transaction and determines the outcome of a failure: the only
// place that reports a failed commit as `not-done`.
import type { FailedOutcome } from '../../resilience/store-error.ts'
import type { Write } from './parameters.ts'
import type { Row } from './row.ts'
import type { GroupResult } from './writer.ts'

/** The result of one write: its row, and how many rows it changed. */
export interface WriteResult {
  readonly row: Row | undefined
  readonly changed: number
}

/** The connection on which a group runs. */
export interface Transactions {
  start(): void
  commit(): void
  rollback(): void
  isOpen(): boolean
  run(write: Write): WriteResult
}

const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/** Runs the group completely or not at all. Never throws: the thread must survive failures. */
export function runGroup(db: Transactions, group: readonly Write[]): GroupResult {
  const startMs = performance.now()
  let isCommitting = false
  try {
    db.start()
    const results = group.map((write) => db.run(write))
    isCommitting = true
    db.commit()
    const tookMs = performance.now() - startMs
    return {
      rows: results.map(({ row }) => row),
      wrote: results.some(({ changed }) => changed > 0),
      tookMs,
    }
  } catch (error) {
    const outcome = isCommitting && !isCertainlyNotDone(error) ? 'unknown' : 'not-done'
    return { failure: (error as Error).message, outcome: rollBack(db, outcome) }
  }
}

/**
 * Whether a commit failed before its last frame was in the WAL: the disk was full, or the lock was
 * taken. After any other failure, such as a failed sync, a restart may find the commit done.
 */
function isCertainlyNotDone(error: unknown): boolean {
  const { errcode } = error as { errcode?: unknown }
  if (typeof errcode !== 'number') return false
  const primary = errcode & 0xff
  return primary === SQLITE_FULL || primary === SQLITE_BUSY
}

/** Rolls back unless SQLite has done so itself; returns `outcome`, or `unknown` if that fails. */
function rollBack(db: Transactions, outcome: FailedOutcome): FailedOutcome {
  try {
    if (db.isOpen()) db.rollback()
    return outcome
  } catch {
    return 'unknown' // an open transaction fails the next BEGIN, and is rolled back then
  }
}
