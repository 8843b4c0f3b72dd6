// A scan of a database on a slow disk: the main thread serves other requests between its slices.
import { rm } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type Database, openDatabase } from '../../../src/stores/sqlite/database.ts'
import { createSqliteLinkStore } from '../../../src/stores/sqlite/link-store.ts'
import { createTempFolder } from '../../contract/open-sqlite.ts'
import { sampleLink } from '../../contract/sample-link.ts'

const LINKS = 300
const ROW_MS = 4
const codes = Array.from({ length: LINKS }, (_, i) => `c${String(i).padStart(4, '0')}`)

let dataDir: string
let db: Database

beforeEach(async () => {
  dataDir = await createTempFolder()
  db = await openDatabase(dataDir, createMetrics())
  const links = createSqliteLinkStore(db)
  await Promise.all(codes.map((code) => links.insertIfAbsent(sampleLink({ code }))))
})
afterEach(async () => {
  await db.close()
  await rm(dataDir, { recursive: true })
})

/** A store whose scans need so long for each row. */
function openSlow(rowMs: number) {
  return createSqliteLinkStore({
    ...db,
    prepareReadSlice: (sql, read) =>
      db.prepareReadSlice(sql, (row) => {
        const endMs = performance.now() + rowMs
        while (performance.now() < endMs); // as a read of a slow disk, which blocks the thread
        return read(row)
      }),
  })
}

test('a page of slow rows is complete, and blocks the thread for short times', async () => {
  const links = openSlow(ROW_MS)
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const startedMs = performance.now()
  const page = await links.scan({ after: undefined, max: 250 })
  const tookMs = performance.now() - startedMs
  clearInterval(timer)
  expect(page.map(({ code }) => code)).toEqual(codes.slice(0, 250))
  expect(tookMs).toBeGreaterThan(250 * ROW_MS)
  expect(turns).toBeGreaterThan(30) // other work, between slices of at most four rows
  const last = await links.scan({ after: page.at(-1)?.code, max: 250 })
  expect(last.map(({ code }) => code)).toEqual(codes.slice(250))
})

test('rows that each take longer than a slice are returned one per slice', async () => {
  const page = await openSlow(12).scan({ after: codes[9], max: 5 })
  expect(page.map(({ code }) => code)).toEqual(codes.slice(10, 15))
})

test('a link that is stored after a slice, at a later place, is in the page', async () => {
  const scanning = openSlow(ROW_MS).scan({ after: undefined, max: 1000 })
  const added = sampleLink({ code: 'zz' })
  await createSqliteLinkStore(db).insertIfAbsent(added)
  expect((await scanning).at(-1)).toEqual(added)
})
