// Groups of writes on a connection with injected failures: the outcome of each failure.
import { expect, test } from '@jest/globals'
import { runGroup, type Transactions } from './run-group.ts'

/** An error as node:sqlite throws it, with SQLite's extended code. */
const sqliteError = (errcode: number) => Object.assign(new Error('message'), { errcode })
const FULL = sqliteError(13)
const BUSY_SNAPSHOT = sqliteError(5 | (2 << 8))
const IO_FSYNC = sqliteError(10 | (4 << 8))
const failWith = (error: Error) => () => {
  throw error
}

/** A connection; `autoRollback`: a failed step has rolled back, as with SQLITE_FULL. */
function connection(change: Partial<Transactions> = {}, autoRollback = false) {
  const calls: string[] = []
  let isOpen = false
  const db: Transactions = {
    start: () => {
      isOpen = true
    },
    commit: () => {
      isOpen = false
    },
    rollback: () => {
      calls.push('rollback')
      isOpen = false
    },
    run: ([name]) => ({ row: { name }, changed: name === 'readLink' ? 0 : 1 }),
    ...change,
    isOpen: () => isOpen && !autoRollback,
  }
  return { db, calls }
}

test('a completed group returns its rows, and whether it wrote', () => {
  const { db, calls } = connection()
  const startMs = performance.now()
  const result = runGroup(db, [['readLink'], ['insertLink']])
  const msMax = performance.now() - startMs
  const rows = [{ name: 'readLink' }, { name: 'insertLink' }]
  expect(result).toEqual({ rows, wrote: true, tookMs: expect.any(Number) })
  expect('tookMs' in result && result.tookMs <= msMax).toBe(true)
  expect(runGroup(db, [['readLink']])).toMatchObject({ wrote: false })
  expect(calls).toEqual([])
})

test.each([
  ['start', BUSY_SNAPSHOT, 'not-done'],
  ['run', FULL, 'not-done'],
  ['run', IO_FSYNC, 'not-done'],
  ['commit', FULL, 'not-done'],
  ['commit', BUSY_SNAPSHOT, 'not-done'],
  ['commit', IO_FSYNC, 'unknown'],
  ['commit', new Error('no code'), 'unknown'],
] as const)('%s fails with %s: %s', (step, error, outcome) => {
  for (const autoRollback of [false, true]) {
    const { db, calls } = connection({ [step]: failWith(error) }, autoRollback)
    expect(runGroup(db, [['insertLink']])).toEqual({ failure: error.message, outcome })
    expect(calls).toHaveLength(autoRollback || step === 'start' ? 0 : 1)
  }
})

test.each(['run', 'commit'] as const)(
  'a failed rollback after a failed %s does not throw',
  (step) => {
    const { db } = connection({ [step]: failWith(FULL), rollback: failWith(new Error('broken')) })
    expect(runGroup(db, [['insertLink']])).toEqual({ failure: 'message', outcome: 'unknown' })
  },
)
