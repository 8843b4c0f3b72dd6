// Migrates a keyspace to the newest schema, forward only. Concurrent runs and a kill at any moment
// are safe: runs exclude each other by a lock, and each step is idempotent.
import { randomUUID } from 'node:crypto'
import { pause } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { Cassandra, CassandraSession } from './client.ts'
import { isNewTableError } from './failed-outcome.ts'
import { integerOf, uuidOf, wasApplied } from './row.ts'
import { createMigrationsTable, type Migration, migrations } from './schema.ts'

/** The version of the lock's row; steps count from 1. */
const LOCK = 0
/** The holder renews the lock before each statement; otherwise it expires. */
const LOCK_SECONDS = 60
const LOCK_RETRY_MS = 500
const LOCK_WAIT_MS_MAX = 5 * 60_000

const HAS_MIGRATIONS = `SELECT table_name FROM system_schema.tables
  WHERE keyspace_name = ? AND table_name = 'schema_migrations'`

/** The version of the schema, 0 before the first migration. Throws StoreError. */
export async function readSchemaVersion(
  cassandra: CassandraSession,
  keyspace: string,
): Promise<number> {
  const tables = await cassandra.execute('scan', HAS_MIGRATIONS, [keyspace])
  if (tables.length === 0) return 0
  const cql = `SELECT version FROM ${keyspace}.schema_migrations`
  const rows = await cassandra.execute('new-table-scan', cql).catch((error: unknown) => {
    // A node lists a new table shortly before the table is readable.
    if (error instanceof StoreError && isNewTableError(error.cause)) return []
    throw error
  })
  return Math.max(0, ...rows.map((row) => integerOf(row['version'])))
}

/** Whether a keyspace exists. Throws StoreError. */
export async function hasKeyspace(cassandra: CassandraSession, keyspace: string): Promise<boolean> {
  const cql = 'SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?'
  return (await cassandra.execute('scan', cql, [keyspace])).length > 0
}

/**
 * Applies every missing step; resolves to the current version and the number of steps applied.
 * Throws StoreError, after which it can be rerun.
 */
export async function migrate(
  cassandra: Cassandra,
  given: {
    readonly keyspace: string
    readonly signal: AbortSignal
    /** Called before each step. */
    readonly onStep: (step: Migration) => void
    /** Called once if another migration holds the lock. */
    readonly onWait: () => void
    readonly steps?: readonly Migration[]
  },
): Promise<{ readonly version: number; readonly applied: number }> {
  const { keyspace, signal, onStep, steps = migrations } = given
  await cassandra.changeSchema(createMigrationsTable(keyspace))
  const record = `INSERT INTO ${keyspace}.schema_migrations (version, about, applied_at)
    VALUES (?, ?, ?) IF NOT EXISTS`
  const lock = createLock(cassandra, keyspace)
  await lock.acquire(signal, given.onWait)
  try {
    const before = await readSchemaVersion(cassandra, keyspace)
    const missing = steps.filter(({ version }) => version > before)
    for (const step of missing) {
      onStep(step)
      for (const statement of step.statements) {
        await lock.renew()
        await cassandra.changeSchema(statement.replaceAll('KEYSPACE.', `${keyspace}.`))
      }
      await lock.renew()
      await cassandra.execute('lwt', record, [step.version, step.about, new Date()])
    }
    return { version: await readSchemaVersion(cassandra, keyspace), applied: missing.length }
  } finally {
    await lock.release()
  }
}

/** The migration lock: a row with a TTL, so that it expires if its holder crashes. */
function createLock(cassandra: CassandraSession, keyspace: string) {
  const table = `${keyspace}.schema_migrations`
  const holder = randomUUID()
  const isHeld = async () => {
    const cql = `SELECT holder FROM ${table} WHERE version = ${LOCK}`
    const [row] = await cassandra.execute('serial-read', cql)
    return uuidOf(row?.['holder']) === holder
  }
  /** Whether this run holds the lock after a conditional write; reads it on an unknown outcome. */
  const isHeldAfter = async (cql: string, values: readonly unknown[]) => {
    try {
      const [row] = await cassandra.execute('lwt', cql, values)
      return wasApplied(row)
    } catch (error) {
      if (!(error instanceof StoreError) || error.outcome === 'not-done') throw error
      return isHeld()
    }
  }
  const insert = `INSERT INTO ${table} (version, holder) VALUES (${LOCK}, ?)
    IF NOT EXISTS USING TTL ${LOCK_SECONDS}`
  const renew = `UPDATE ${table} USING TTL ${LOCK_SECONDS} SET holder = ?
    WHERE version = ${LOCK} IF holder = ?`
  const remove = `DELETE FROM ${table} WHERE version = ${LOCK} IF holder = ?`
  return {
    async acquire(signal: AbortSignal, onWait: () => void) {
      const deadlineMs = performance.now() + LOCK_WAIT_MS_MAX
      for (let attempts = 0; !(await isHeldAfter(insert, [holder])); attempts++) {
        if (attempts === 0) onWait()
        if (signal.aborted || performance.now() > deadlineMs)
          throw new StoreError('another migration is running', { outcome: 'not-done' })
        await pause(LOCK_RETRY_MS, signal)
      }
    },
    async renew() {
      if (await isHeldAfter(renew, [holder, holder])) return
      throw new StoreError('the migration lock was lost to another process', {
        outcome: 'not-done',
      })
    },
    /** Releases the lock; on failure it expires. */
    async release() {
      await cassandra.execute('lwt', remove, [holder]).catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error
      })
    },
  }
}
