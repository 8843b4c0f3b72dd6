// The events of the standalone database: of write groups, of reads and of its writer thread.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, expect, test } from '@jest/globals'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { openDatabase } from '../../../src/stores/sqlite/database.ts'
import { createSqliteLinkStore } from '../../../src/stores/sqlite/link-store.ts'
import { createTempFolder } from '../../contract/open-sqlite.ts'
import { sampleLink } from '../../contract/sample-link.ts'

const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Opens a database, which records its events, and another connection to inject faults. */
async function openWatched() {
  const dataDir = await createTempFolder()
  cleanUps.push(() => rm(dataDir, { recursive: true }))
  const events: string[] = []
  const db = await openDatabase(dataDir, createMetrics(), {
    succeeded: (side) => events.push(`${side} succeeded`),
    failed: (side, reason) => events.push(`${side} failed: ${reason}`),
    writerStopped: (error) => events.push(`writer stopped: ${error.message}`),
    restricted: ({ path }) => events.push(`restricted: ${path}`),
  })
  cleanUps.push(() => db.close())
  const other = new DatabaseSync(join(dataDir, 'curtail.db'))
  cleanUps.push(() => {
    other.close()
  })
  const links = createSqliteLinkStore(db)
  return { db, links, other, takeEvents: () => events.splice(0) }
}

test('the database reports a failed group, and a success only of a group that writes', async () => {
  const { links, other, takeEvents } = await openWatched()
  const link = sampleLink()
  other.exec('BEGIN IMMEDIATE')
  await expect(links.insertIfAbsent(link)).rejects.toMatchObject({ outcome: 'not-done' })
  expect(takeEvents()).toEqual(['write failed: database is locked'])
  other.exec('ROLLBACK')
  await links.readSerial(link.code)
  expect(takeEvents()).toEqual([])
  await links.insertIfAbsent(link)
  expect(takeEvents()).toEqual(['write succeeded'])
  await links.insertIfAbsent(link)
  expect(takeEvents()).toEqual([])
})

test('the database reports a failed read and then a successful one', async () => {
  const { links, other, takeEvents } = await openWatched()
  other.exec('ALTER TABLE links RENAME TO unreadable')
  const read = links.find('any')
  await expect(read).rejects.toMatchObject({ name: 'StoreError', outcome: 'not-done' })
  expect(takeEvents()).toEqual(['read failed: no such table: links'])
  other.exec('ALTER TABLE unreadable RENAME TO links')
  await links.find('any')
  expect(takeEvents()).toEqual(['read succeeded'])
})

test('a probe reports both sides, and never throws', async () => {
  const { db, other, takeEvents } = await openWatched()
  other.exec(
    `INSERT INTO code_pools (pool, pool_number, minted, claimed, secret_fingerprint)
     VALUES ('p', 0, 3, 2, 'f')`,
  )
  await db.probe()
  expect(takeEvents().sort()).toEqual(['read succeeded', 'write succeeded'])
  expect(other.prepare('SELECT minted, claimed FROM code_pools').get()).toEqual({
    minted: 3,
    claimed: 2,
  })
  other.exec('BEGIN IMMEDIATE')
  await db.probe()
  other.exec('ROLLBACK')
  expect(takeEvents().sort()).toEqual(['read succeeded', 'write failed: database is locked'])
})

test('the database does not report a requested close', async () => {
  const { db, takeEvents } = await openWatched()
  await db.close()
  await new Promise((resolve) => setImmediate(resolve))
  expect(takeEvents()).toEqual([])
  cleanUps.splice(1, 1) // the database is closed
})
