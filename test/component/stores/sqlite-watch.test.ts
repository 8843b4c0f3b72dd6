// The events of the standalone database: of write groups, of reads and of its writer's stop.
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

/** A database, what it has told since it was last asked, and another connection to meddle. */
async function watched() {
  const dataDir = await createTempFolder()
  cleanUps.push(() => rm(dataDir, { recursive: true }))
  const told: string[] = []
  const db = await openDatabase(dataDir, createMetrics(), {
    succeeded: (side) => told.push(`${side} worked`),
    failed: (side, reason) => told.push(`${side} failed: ${reason}`),
    writerStopped: (error) => told.push(`ended: ${error.message}`),
    tightened: ({ path }) => told.push(`tightened: ${path}`),
  })
  cleanUps.push(() => db.close())
  const other = new DatabaseSync(join(dataDir, 'curtail.db'))
  cleanUps.push(() => {
    other.close()
  })
  const links = createSqliteLinkStore(db)
  return { db, links, other, toldSince: () => told.splice(0) }
}

test('a failed group is reported, and only a group that writes reports a success', async () => {
  const { links, other, toldSince } = await watched()
  const link = sampleLink()
  other.exec('BEGIN IMMEDIATE')
  await expect(links.insertIfAbsent(link)).rejects.toMatchObject({ outcome: 'not-done' })
  expect(toldSince()).toEqual(['write failed: database is locked'])
  other.exec('ROLLBACK')
  await links.readSerial(link.code)
  expect(toldSince()).toEqual([])
  await links.insertIfAbsent(link)
  expect(toldSince()).toEqual(['write worked'])
  await links.insertIfAbsent(link)
  expect(toldSince()).toEqual([])
})

test('a failed read is reported, and then a successful one', async () => {
  const { links, other, toldSince } = await watched()
  other.exec('ALTER TABLE links RENAME TO gone')
  const read = links.find('any')
  await expect(read).rejects.toMatchObject({ name: 'StoreError', outcome: 'not-done' })
  expect(toldSince()).toEqual(['read failed: no such table: links'])
  other.exec('ALTER TABLE gone RENAME TO links')
  await links.find('any')
  expect(toldSince()).toEqual(['read worked'])
})

test('a probe reports both sides, and never throws', async () => {
  const { db, other, toldSince } = await watched()
  other.exec(
    `INSERT INTO code_pools (pool, pool_number, minted, claimed, secret_fingerprint)
     VALUES ('p', 0, 3, 2, 'f')`,
  )
  await db.probe()
  expect(toldSince().sort()).toEqual(['read worked', 'write worked'])
  expect(other.prepare('SELECT minted, claimed FROM code_pools').get()).toEqual({
    minted: 3,
    claimed: 2,
  })
  other.exec('BEGIN IMMEDIATE')
  await db.probe()
  other.exec('ROLLBACK')
  expect(toldSince().sort()).toEqual(['read worked', 'write failed: database is locked'])
})

test('a requested close is not reported', async () => {
  const { db, toldSince } = await watched()
  await db.close()
  await new Promise((resolve) => setImmediate(resolve))
  expect(toldSince()).toEqual([])
  cleanUps.splice(1, 1) // it is closed
})
