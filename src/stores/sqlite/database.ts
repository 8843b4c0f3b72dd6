// Opens the standalone database: one writer, in a thread of its own (writer.ts), and one reader
// here. Refuses a folder that another process uses: two would not see each other's memory.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Metrics } from '../../telemetry/metrics.ts'
import { OperatorError } from '../../process/role.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { durablePragmas } from './durable-pragmas.ts'
import { READ_PROBE } from './operations.ts'
import type { Parameter } from './parameters.ts'
import { makePrivate } from './private-files.ts'
import type { Row } from './row.ts'
import { migrations } from './schema.ts'
import { unwatched, type WatchedBy } from './store-watch.ts'
import { startWriter, type Writer } from './writer.ts'

/** A read of one row. Rejects with StoreError. */
type Read<T> = (parameters: Readonly<Record<string, Parameter>>) => Promise<T | undefined>

/** The open database. */
export interface Database {
  readonly writer: Writer
  /** Prepares a read of what has been committed; `read` turns its row into a value. */
  prepareRead<T>(sql: string, read: (row: Row) => T): Read<T>
  /** Writes and reads to no effect: whoever watches sees whether both work. Never throws. */
  probe(): Promise<void>
  /** Ends the writer after what it has in hand, and closes the files. */
  close(): Promise<void>
}

/** Opens, and migrates, the database in `dataDir`. Throws OperatorError. */
export async function openDatabase(
  dataDir: string,
  metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>,
  watch: WatchedBy = unwatched,
): Promise<Database> {
  const lock = lockFolder(dataDir, watch)
  const path = join(dataDir, 'curtail.db')
  try {
    migrate(path)
    const reader = new DatabaseSync(path, { readOnly: true })
    const writer = await startWriter(path, { metrics, watch })
    const prepareRead = readsOf(reader, watch)
    const probeRead = prepareRead(READ_PROBE, () => true)
    return {
      writer,
      prepareRead,
      async probe() {
        await Promise.allSettled([writer.run('probe', {}), probeRead({})])
      },
      async close() {
        await writer.close()
        reader.close()
        lock.close()
      },
    }
  } catch (error) {
    lock.close()
    throw error instanceof OperatorError ? error : unusable(dataDir, error)
  }
}

/** The reads of a connection; how each fares is told to `watch`. */
function readsOf(reader: DatabaseSync, watch: WatchedBy): Database['prepareRead'] {
  return (sql, read) => {
    const statement = reader.prepare(sql)
    return (parameters) => {
      try {
        const row = statement.get(parameters)
        const value = row === undefined ? undefined : read(row)
        watch.worked('read')
        return Promise.resolve(value)
      } catch (cause) {
        watch.failed('read', (cause as Error).message)
        return Promise.reject(new StoreError('SQLite cannot read', { outcome: 'not-done', cause }))
      }
    }
  }
}

/** What is told of a folder in which the database cannot be opened. */
export function unusable(dataDir: string, error: unknown): OperatorError {
  return new OperatorError(`DATA_DIR ${dataDir} cannot be used: ${(error as Error).message}`)
}

/** Holds the folder as long as the process lives: the lock goes with it, however it ends. */
function lockFolder(dataDir: string, watch: WatchedBy): DatabaseSync {
  let lock: DatabaseSync | undefined
  try {
    for (const found of makePrivate(dataDir)) watch.tightened(found)
    lock = new DatabaseSync(join(dataDir, 'lock.db'))
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock?.close()
    if (!(error as Error).message.includes('locked')) throw unusable(dataDir, error)
    throw new OperatorError(`DATA_DIR ${dataDir} is in use by another process`)
  }
}

function migrate(path: string): void {
  const db = new DatabaseSync(path)
  try {
    db.exec(durablePragmas)
    const row = db.prepare('PRAGMA user_version').get()
    const done = Number(row?.['user_version'])
    if (done > migrations.length) {
      throw new OperatorError(`${path} was written by a newer version of Curtail: use that one`)
    }
    migrations.slice(done).forEach((sql, i) => {
      db.exec(`BEGIN IMMEDIATE; ${sql} PRAGMA user_version = ${String(done + i + 1)}; COMMIT`)
    })
  } finally {
    db.close()
  }
}
