// Opens the standalone database: one writer in its own thread (writer.ts) and one reader in the
// main thread. Rejects a folder in use by another process, whose in-memory state this one cannot
// read.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Metrics } from '../../telemetry/metrics.ts'
import { OperatorError } from '../../process/role.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { checkDataFolder } from './data-folder.ts'
import { durablePragmas } from './durable-pragmas.ts'
import { READ_PROBE } from './operations.ts'
import type { Parameter } from './parameters.ts'
import { restrictAccess } from './private-files.ts'
import type { Row } from './row.ts'
import { migrations } from './schema.ts'
import { noObserver, type StoreObserver } from './store-watch.ts'
import { startWriterThread, type Writer } from './writer.ts'

/** A read with these values of its parameters. Rejects with StoreError. */
type Read<T> = (parameters: Readonly<Record<string, Parameter>>) => Promise<T>

/** The first rows of a read; at least one, unless there is none. */
interface Slice<T> {
  readonly rows: readonly T[]
  /** Whether these are all rows. */
  readonly isComplete: boolean
}

/** How long a slice may block the main thread, which serves all requests. */
const SLICE_MS_MAX = 10

/** The open database. */
export interface Database {
  readonly writer: Writer
  /** Prepares a read of one row of committed data, if any; `read` converts it. */
  prepareRead<T>(sql: string, read: (row: Row) => T): Read<T | undefined>
  /** Prepares a read of rows of committed data, which blocks this thread; `read` converts each. */
  prepareReadAll<T>(sql: string, read: (row: Row) => T): Read<readonly T[]>
  /**
   * Prepares a read of rows of committed data, which blocks this thread for at most 10 ms plus the
   * time of one row, and then returns the rows so far.
   */
  prepareReadSlice<T>(sql: string, read: (row: Row) => T): Read<Slice<T>>
  /** Writes and reads without effect, so that `watch` observes whether both work. Never throws. */
  probe(): Promise<void>
  /** Stops the writer after its pending groups, and closes the files. */
  close(): Promise<void>
}

/** Opens and migrates the database in `dataDir`. Throws ConfigError or OperatorError. */
export async function openDatabase(
  dataDir: string,
  metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>,
  watch: StoreObserver = noObserver,
): Promise<Database> {
  const lock = lockFolder(dataDir, watch)
  const path = join(dataDir, 'curtail.db')
  try {
    migrate(path)
    const reader = new DatabaseSync(path, { readOnly: true })
    const writer = await startWriterThread(path, { metrics, watch })
    const reads = readPreparer(reader, watch)
    const probeRead = reads.prepareRead(READ_PROBE, () => true)
    return {
      writer,
      ...reads,
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
    throw error instanceof OperatorError ? error : unusableFolder(dataDir, error)
  }
}

/** Prepares the reads of a connection; reports the result of each to `watch`. */
function readPreparer(
  reader: DatabaseSync,
  watch: StoreObserver,
): Pick<Database, 'prepareRead' | 'prepareReadAll' | 'prepareReadSlice'> {
  const observed =
    <T>(read: (parameters: Parameters<Read<T>>[0]) => T): Read<T> =>
    (parameters) => {
      try {
        const value = read(parameters)
        watch.succeeded('read')
        return Promise.resolve(value)
      } catch (cause) {
        watch.failed('read', (cause as Error).message)
        return Promise.reject(new StoreError('SQLite cannot read', { outcome: 'not-done', cause }))
      }
    }
  return {
    prepareRead(sql, read) {
      const statement = reader.prepare(sql)
      return observed((parameters) => {
        const row = statement.get(parameters)
        return row === undefined ? undefined : read(row)
      })
    },
    prepareReadAll(sql, read) {
      const statement = reader.prepare(sql)
      return observed((parameters) => statement.all(parameters).map(read))
    },
    prepareReadSlice(sql, read) {
      const statement = reader.prepare(sql)
      return observed((parameters) => {
        const endMs = performance.now() + SLICE_MS_MAX
        const rows = []
        for (const row of statement.iterate(parameters)) {
          rows.push(read(row))
          if (performance.now() >= endMs) return { rows, isComplete: false }
        }
        return { rows, isComplete: true }
      })
    },
  }
}

/** The error for a folder in which the database cannot be opened. */
export function unusableFolder(dataDir: string, error: unknown): OperatorError {
  return new OperatorError(`DATA_DIR ${dataDir} cannot be used: ${(error as Error).message}`)
}

/** Locks the folder until the process exits; even a crash releases the lock. */
function lockFolder(dataDir: string, watch: StoreObserver): DatabaseSync {
  let lock: DatabaseSync | undefined
  try {
    for (const found of restrictAccess(dataDir)) watch.restricted(found)
    lock = new DatabaseSync(join(dataDir, 'lock.db'))
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock?.close()
    if (!(error as Error).message.includes('locked')) {
      checkDataFolder(dataDir)
      throw unusableFolder(dataDir, error)
    }
    throw new OperatorError(`DATA_DIR ${dataDir} is in use by another process`)
  }
}

function migrate(path: string): void {
  const db = new DatabaseSync(path)
  try {
    db.exec(durablePragmas)
    const row = db.prepare('PRAGMA user_version').get()
    const version = Number(row?.['user_version'])
    if (version > migrations.length) {
      throw new OperatorError(`${path} was written by a newer version of Curtail: use that version`)
    }
    migrations.slice(version).forEach((sql, i) => {
      db.exec(`BEGIN IMMEDIATE; ${sql} PRAGMA user_version = ${String(version + i + 1)}; COMMIT`)
    })
  } finally {
    db.close()
  }
}
