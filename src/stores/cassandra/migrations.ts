// Brings a keyspace to the newest schema. Forward only; may be run twice at once and killed at any
// moment: those who migrate take turns, and each step may be done again.
import { randomUUID } from 'node:crypto'
import { pause } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { Cassandra, CassandraSession } from './client.ts'
import { shapeOf } from './failed-outcome.ts'
import { integerOf, uuidOf, wasApplied } from './row.ts'
import { createMigrationsTable, type Migration, migrations } from './schema.ts'

/** The row by which turns are taken; versions count from 1. */
const LOCK = 0
/** Whoever holds the turn says so again before each statement, or another takes it. */
const TURN_SECONDS = 60
const TURN_PAUSE_MS = 500
const TURN_WAIT_MS_MAX = 5 * 60_000

const HAS_MIGRATIONS = `SELECT table_name FROM system_schema.tables
  WHERE keyspace_name = ? AND table_name = 'schema_migrations'`

/** How a server refuses a statement on what is not there. */
const INVALID = 0x2200

/** What migrating came to. */
export interface Migrated {
  /** The version that stands. */
  readonly version: number
  /** How many steps were done now. */
  readonly applied: number
}

/** The version of the schema, 0 where there is none yet. Throws StoreError. */
export async function readSchemaVersion(
  cassandra: CassandraSession,
  keyspace: string,
): Promise<number> {
  const there = await cassandra.execute('scan', HAS_MIGRATIONS, [keyspace])
  if (there.length === 0) return 0
  const cql = `SELECT version FROM ${keyspace}.schema_migrations`
  const rows = await cassandra.execute('scan', cql).catch((error: unknown) => {
    // A node lists a table that is being made a moment before it can be read.
    if (error instanceof StoreError && shapeOf(error.cause).code === INVALID) return []
    throw error
  })
  return Math.max(0, ...rows.map((row) => integerOf(row['version'])))
}

/** Whether a keyspace is there. Throws StoreError. */
export async function hasKeyspace(cassandra: CassandraSession, keyspace: string): Promise<boolean> {
  const cql = 'SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?'
  return (await cassandra.execute('scan', cql, [keyspace])).length > 0
}

/** Does every step that has not been done. Throws StoreError: run it again. */
export async function migrate(
  cassandra: Cassandra,
  given: {
    readonly keyspace: string
    readonly signal: AbortSignal
    /** Told of each step before it is done. */
    readonly onStep: (step: Migration) => void
    /** Told once where another is migrating. */
    readonly onWait: () => void
    readonly steps?: readonly Migration[]
  },
): Promise<Migrated> {
  const { keyspace, signal, onStep, steps = migrations } = given
  const change = schemaChanger(cassandra)
  await change(createMigrationsTable(keyspace))
  const turn = createTurn(cassandra, keyspace)
  await turn.take(signal, given.onWait)
  try {
    const before = await readSchemaVersion(cassandra, keyspace)
    const missing = steps.filter(({ version }) => version > before)
    for (const step of missing) {
      onStep(step)
      for (const statement of step.statements) {
        await turn.keep()
        await change(statement.replaceAll('KEYSPACE.', `${keyspace}.`))
      }
      await turn.keep()
      await record(cassandra, keyspace, step)
    }
    return { version: await readSchemaVersion(cassandra, keyspace), applied: missing.length }
  } finally {
    await turn.leave()
  }
}

/** Changes the schema and sees to it that all nodes have the change before the next. */
function schemaChanger(cassandra: Pick<Cassandra, 'changeSchema'>) {
  return async (cql: string) => {
    if (await cassandra.changeSchema(cql)) return
    throw new StoreError('the nodes of Cassandra do not agree on the schema', {
      outcome: 'unknown',
    })
  }
}

async function record(
  cassandra: CassandraSession,
  keyspace: string,
  { version, about }: Migration,
): Promise<void> {
  const cql = `INSERT INTO ${keyspace}.schema_migrations (version, about, applied_at)
    VALUES (?, ?, ?) IF NOT EXISTS`
  await cassandra.execute('lwt', cql, [version, about, new Date()])
}

/** A turn at migrating, held by a row that goes by itself when its holder does. */
function createTurn(cassandra: CassandraSession, keyspace: string) {
  const table = `${keyspace}.schema_migrations`
  const holder = randomUUID()
  const isMine = async () => {
    const cql = `SELECT holder FROM ${table} WHERE version = ${LOCK}`
    const [row] = await cassandra.execute('serial-read', cql)
    return uuidOf(row?.['holder']) === holder
  }
  /** Whether the turn is ours after a conditional write; where that is unknown, it is read. */
  const isMineAfter = async (cql: string, values: readonly unknown[]) => {
    try {
      const [row] = await cassandra.execute('lwt', cql, values)
      return wasApplied(row)
    } catch (error) {
      if (!(error instanceof StoreError) || error.outcome === 'not-done') throw error
      return isMine()
    }
  }
  const insert = `INSERT INTO ${table} (version, holder) VALUES (${LOCK}, ?)
    IF NOT EXISTS USING TTL ${TURN_SECONDS}`
  const prolong = `UPDATE ${table} USING TTL ${TURN_SECONDS} SET holder = ?
    WHERE version = ${LOCK} IF holder = ?`
  const remove = `DELETE FROM ${table} WHERE version = ${LOCK} IF holder = ?`
  return {
    async take(signal: AbortSignal, onWait: () => void) {
      const endMs = performance.now() + TURN_WAIT_MS_MAX
      for (let tries = 0; !(await isMineAfter(insert, [holder])); tries++) {
        if (tries === 0) onWait()
        if (signal.aborted || performance.now() > endMs)
          throw new StoreError('another is migrating', { outcome: 'not-done' })
        await pause(TURN_PAUSE_MS, signal)
      }
    },
    async keep() {
      if (await isMineAfter(prolong, [holder, holder])) return
      throw new StoreError('another has begun to migrate meanwhile', { outcome: 'not-done' })
    },
    /** Gives the turn up; where that fails it goes by itself. */
    async leave() {
      await cassandra.execute('lwt', remove, [holder]).catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error
      })
    },
  }
}
