// One group of writes as one transaction, and what is known of it where it fails: the only place
// that says "certainly not done" of a commit.
import type { FailedOutcome } from '../../resilience/store-error.ts'
import type { Write } from './parameters.ts'
import type { Answer, Row } from './writer.ts'

/** What one write gave: its row, and how many rows it changed. */
export interface Done {
  readonly row: Row | undefined
  readonly changed: number
}

/** The connection that a group runs on. */
export interface Transactions {
  begin(): void
  commit(): void
  rollback(): void
  isOpen(): boolean
  run(write: Write): Done
}

const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/** Runs the group whole or not at all. Never throws: the thread must outlive its failures. */
export function runGroup(db: Transactions, group: readonly Write[]): Answer {
  const begunMs = performance.now()
  let isCommitting = false
  try {
    db.begin()
    const done = group.map((write) => db.run(write))
    isCommitting = true
    db.commit()
    const tookMs = performance.now() - begunMs
    return { rows: done.map(({ row }) => row), wrote: done.some((one) => one.changed > 0), tookMs }
  } catch (error) {
    const outcome = isCommitting && !isRefusal(error) ? 'unknown' : 'not-done'
    return { failure: (error as Error).message, outcome: rolledBack(db, outcome) }
  }
}

/**
 * Whether a commit failed before its last frame was in the log: there was no room for it, or no
 * lock. After any other failure, such as that of its sync, it may be found done after a restart.
 */
function isRefusal(error: unknown): boolean {
  const { errcode } = error as { errcode?: unknown }
  if (typeof errcode !== 'number') return false
  const primary = errcode & 0xff
  return primary === SQLITE_FULL || primary === SQLITE_BUSY
}

/** `outcome`, once nothing of the group is left open; SQLite may have rolled it back itself. */
function rolledBack(db: Transactions, outcome: FailedOutcome): FailedOutcome {
  try {
    if (db.isOpen()) db.rollback()
    return outcome
  } catch {
    return 'unknown' // what is still open fails the next BEGIN, and is rolled back then
  }
}
