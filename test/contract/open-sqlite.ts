// Opens SQLite for tests, in a new folder among the system's temporary files. Closing removes
// the folder.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { type Database, openDatabase } from '../../src/stores/sqlite/database.ts'
import { openDependencies } from './open-dependencies.ts'

/** An open database, its folder and its metrics. */
export interface OpenedSqlite {
  readonly db: Database
  readonly dataDir: string
  readonly metrics: Metrics
  readonly close: () => Promise<void>
}

/** Creates a folder among the system's temporary files. */
export function createTempFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'curtail-test-'))
}

/** Opens an empty database. */
export function openSqlite(): Promise<OpenedSqlite> {
  return openDependencies(async (onClose) => {
    const dataDir = await createTempFolder()
    onClose(() => rm(dataDir, { recursive: true }))
    const metrics = createMetrics()
    const db = await openDatabase(dataDir, metrics)
    onClose(() => db.close())
    return { db, dataDir, metrics }
  })
}
