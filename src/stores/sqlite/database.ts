// Opens the standalone database: one writer, in a thread of its own (writer.ts), and one reader
// here. Refuses a folder that another process uses: two would not see each other's memory.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Metrics } from '../../process/metrics.ts'
import { OperatorError } from '../../process/role.ts'
import { durablePragmas } from './durable-pragmas.ts'
import { migrations } from './schema.ts'
import { startWriter, type Writer } from './writer.ts'

/** The open database. */
export interface Database {
  readonly writer: Writer
  /** Prepares a read of what has been committed. */
  prepareRead(sql: string): StatementSync
  /** Ends the writer after what it has in hand, and closes the files. */
  close(): Promise<void>
}

/** Opens, and migrates, the database in `dataDir`. Throws OperatorError. */
export async function openDatabase(
  dataDir: string,
  metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>,
): Promise<Database> {
  const lock = lockFolder(dataDir)
  const path = join(dataDir, 'curtail.db')
  try {
    migrate(path)
    const writer = await startWriter(path, metrics)
    const reader = new DatabaseSync(path, { readOnly: true })
    return {
      writer,
      prepareRead: (sql) => reader.prepare(sql),
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

function unusable(dataDir: string, error: unknown): OperatorError {
  return new OperatorError(`DATA_DIR ${dataDir} cannot be used: ${(error as Error).message}`)
}

/** Holds the folder as long as the process lives: the lock goes with it, however it ends. */
function lockFolder(dataDir: string): DatabaseSync {
  let lock: DatabaseSync | undefined
  try {
    mkdirSync(dataDir, { recursive: true })
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
