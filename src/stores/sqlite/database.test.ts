// An open database: what it stores, which process may open it, and how long a slice of rows takes.
// with faults of the disk and other processes are in test/component/stores.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { type Database, openDatabase } from './database.ts'
import { createSqliteLinkStore } from './link-store.ts'
import { type Row, stringOf } from './row.ts'
import { migrations } from './schema.ts'

let dir: string
let db: Database | undefined
let observed: string[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'curtail-database-'))
  observed = []
})
afterEach(async () => {
  jest.restoreAllMocks()
  await db?.close()
  db = undefined
  rmSync(dir, { recursive: true })
})

const open = async () => {
  db = await openDatabase(dir, createMetrics(), {
    succeeded: (kind) => observed.push(kind),
    failed: (kind, reason) => observed.push(`${kind}: ${reason}`),
    writerStopped: () => observed.push('stopped'),
    restricted: ({ path }) => observed.push(`restricted ${path}`),
  })
  return db
}
const close = async () => {
  await db?.close()
  db = undefined
}
/** Runs SQL on the file, past the store. */
const exec = (sql: string) => {
  const other = new DatabaseSync(join(dir, 'curtail.db'))
  other.exec(sql)
  other.close()
}
const readVersion = () => {
  const other = new DatabaseSync(join(dir, 'curtail.db'))
  const row = other.prepare('PRAGMA user_version').get()
  other.close()
  return row?.['user_version']
}
const POOLS = 'SELECT pool FROM code_pools ORDER BY pool'
const insertPool = async (pool: string) =>
  db?.writer.run('insertPool', { pool, secretFingerprint: 'f' })

test('what is written is read, also after the folder is opened another time', async () => {
  await open()
  for (const pool of ['a', 'b']) await insertPool(pool)
  await close()
  const opened = await open()
  const poolOf = (row: Row) => stringOf(row['pool'])
  expect(await opened.prepareReadAll(POOLS, poolOf)({})).toEqual(['a', 'b'])
  const readOne = opened.prepareRead('SELECT pool FROM code_pools WHERE pool = :pool', poolOf)
  expect([await readOne({ pool: 'b' }), await readOne({ pool: 'c' })]).toEqual(['b', undefined])
})

test('a write returns its row, or only the row that existed before', async () => {
  const opened = await open()
  const first = { pool: 'a', minted: 0, claimed: 0 }
  expect([await insertPool('a'), await insertPool('a')]).toMatchObject([first, first])
  const links = createSqliteLinkStore(opened)
  const inserted = ['w', 'x'].map((writerId) =>
    links.insertIfAbsent(sampleLink({ code: 'a', writerId })),
  )
  expect(await Promise.all(inserted)).toEqual(['w', 'w'])
  const change = { pool: 'a', from: 0, to: 7 }
  expect(await opened.writer.run('advanceMinted', change)).toMatchObject({ minted: 7 })
  expect(await opened.writer.run('advanceMinted', change)).toMatchObject({ minted: 7 })
})

test('an older database is migrated from its version', async () => {
  await open()
  await insertPool('a')
  await close()
  expect(readVersion()).toBe(migrations.length)
  await open()
  await close()
  expect(readVersion()).toBe(migrations.length)
})

test('a database of a newer version is rejected, and its folder is not locked', async () => {
  await open()
  await close()
  const newer = migrations.length + 1
  exec(`PRAGMA user_version = ${newer}`)
  await expect(open()).rejects.toThrow('was written by a newer version of Curtail')
  await expect(open()).rejects.toThrow('was written by a newer version of Curtail')
  exec(`PRAGMA user_version = ${migrations.length}`)
  await open()
})

test('an open folder is in use, and a closed one is not', async () => {
  chmodSync(dir, 0o755)
  const first = await open()
  await expect(openDatabase(dir, createMetrics())).rejects.toThrow('is in use by another process')
  expect(observed).toEqual([`restricted ${dir}`])
  await first.close()
  await open()
})

test('a reader cannot write', async () => {
  const opened = await open()
  const remove = opened.prepareReadAll('DELETE FROM code_pools', () => 0)
  await expect(remove({})).rejects.toMatchObject({ outcome: 'not-done' })
  expect(observed.at(-1)).toBe('read: attempt to write a readonly database')
})

test('a probe observes a write and a read', async () => {
  const opened = await open()
  await insertPool('a')
  observed = []
  await opened.probe()
  expect(observed.toSorted()).toEqual(['read', 'write'])
})

test('a slice contains the rows of 10 ms, and at least one', async () => {
  const opened = await open()
  for (const pool of ['a', 'b', 'c', 'd']) await insertPool(pool)
  let nowMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const readFor = (rowMs: number) =>
    opened.prepareReadSlice(POOLS, (row) => {
      nowMs += rowMs
      return row['pool']
    })({})
  expect(await readFor(3)).toEqual({ rows: ['a', 'b', 'c', 'd'], isComplete: false })
  expect(await readFor(2)).toEqual({ rows: ['a', 'b', 'c', 'd'], isComplete: true })
  expect(await readFor(5)).toEqual({ rows: ['a', 'b'], isComplete: false })
  expect(await readFor(11)).toEqual({ rows: ['a'], isComplete: false })
})
