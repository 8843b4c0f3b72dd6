// The standalone database beyond the contract of the stores: durability, the lock of the folder,
// the writes that share a transaction, and the data after a disk fault or a kill.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from '@jest/globals'
import type { Link } from '../../../src/links/link.ts'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'
import { OperatorError } from '../../../src/process/role.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import {
  createSqliteCodeStore,
  insertSecretIfAbsent,
} from '../../../src/stores/sqlite/code-store.ts'
import { type Database, openDatabase } from '../../../src/stores/sqlite/database.ts'
import { createSqliteIntentStore } from '../../../src/stores/sqlite/intent-store.ts'
import { createSqliteLinkStore } from '../../../src/stores/sqlite/link-store.ts'
import { createTempFolder } from '../../contract/open-sqlite.ts'
import { sampleLink } from '../../contract/sample-link.ts'

const program = fileURLToPath(new URL('../../kit/processes/sqlite-child.ts', import.meta.url))
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function folder(): Promise<string> {
  const dataDir = await createTempFolder()
  cleanUps.push(() => rm(dataDir, { recursive: true }))
  return dataDir
}

async function opened(dataDir: string, metrics: Metrics = createMetrics()): Promise<Database> {
  const db = await openDatabase(dataDir, metrics)
  cleanUps.push(() => db.close())
  return db
}

/** Why the folder cannot be opened; closes it where it can. */
async function refusal(dataDir: string): Promise<unknown> {
  try {
    await (await openDatabase(dataDir, createMetrics())).close()
    return undefined
  } catch (error) {
    return error
  }
}

/** Another connection to the same file, to bring about what the store must bear. */
function meddler(dataDir: string): DatabaseSync {
  const db = new DatabaseSync(join(dataDir, 'curtail.db'))
  cleanUps.push(() => {
    if (db.isOpen) db.close()
  })
  return db
}

/** Starts sqlite-child.ts; `limit` = the largest file it may write, in blocks of `ulimit -f`. */
function startChild(dataDir: string, task: string, limit?: number) {
  const command = [process.execPath, program, dataDir, task]
  const args = ['-c', `ulimit -f ${String(limit ?? 'unlimited')}; exec "$@"`, 'sh', ...command]
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line))
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
  const ended = once(child, 'close')
  cleanUps.push(() => child.kill('SIGKILL'))
  return {
    lines,
    ended,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    /** Waits until it has said `count` lines; fails with its complaint where it ends before. */
    untilLines: async (count: number) => {
      while (lines.length < count) {
        const line = once(reader, 'line')
        const how = await Promise.race([line, ended.then(() => 'ended')])
        if (how === 'ended') throw new Error(`the child ended: ${complaint}`)
      }
    },
  }
}

const samples = (count: number): Link[] => Array.from({ length: count }, () => sampleLink())

test('stored data is present after the folder is reopened', async () => {
  const dataDir = await folder()
  const first = await openDatabase(dataDir, createMetrics())
  const link = sampleLink({ creatorId: 5n, expiresAtMs: 1_890_000_000_000 })
  const intent = { keyHash: 'k', bodyHash: 'b', code: 'c', writerId: 'w', expiresAtMs: null }
  await createSqliteLinkStore(first).insertIfAbsent(link)
  await createSqliteIntentStore(first, () => 1000).insertIfAbsent({ ...intent, createdAtMs: 1000 })
  const codes = createSqliteCodeStore(first)
  await codes.insertPoolIfAbsent({ pool: 'p', secretFingerprint: 'f' })
  await codes.putBlock({ pool: 'p', seq: 1, codes: ['abcdefg'] })
  await codes.advanceMinted({ pool: 'p', from: 0, to: 1 })
  const pool = await codes.claimNext({ pool: 'p', from: 0, writerId: 'w' })
  await insertSecretIfAbsent(first, 'code', new Uint8Array([1, 2, 3]))
  await first.close()

  const again = await opened(dataDir)
  expect(await createSqliteLinkStore(again).find(link.code)).toEqual(link)
  const intents = createSqliteIntentStore(again, () => 1000)
  expect(await intents.readSerial('k')).toEqual({ ...intent, createdAtMs: 1000 })
  const codesAgain = createSqliteCodeStore(again)
  expect(await codesAgain.readPoolSerial('p')).toEqual(pool)
  expect(await codesAgain.readBlock({ pool: 'p', seq: 1 })).toEqual(['abcdefg'])
  expect([...(await insertSecretIfAbsent(again, 'code', new Uint8Array([9])))]).toEqual([1, 2, 3])
})

test('a folder in use is rejected, and usable once its process is killed', async () => {
  const dataDir = await folder()
  const holder = startChild(dataDir, 'hold')
  await holder.untilLines(1)
  const message = `DATA_DIR ${dataDir} is in use by another process`
  expect(await refusal(dataDir)).toEqual(new OperatorError(message))
  await holder.kill()
  await opened(dataDir)
})

test('a database of a newer version is rejected and not changed', async () => {
  const dataDir = await folder()
  await (await openDatabase(dataDir, createMetrics())).close()
  const other = meddler(dataDir)
  other.exec('PRAGMA user_version = 999')
  other.close()
  for (let i = 0; i < 2; i++) {
    const newer = expect.stringMatching(/newer version of Curtail/)
    expect(await refusal(dataDir)).toMatchObject({ name: 'OperatorError', message: newer })
  }
  expect(meddler(dataDir).prepare('PRAGMA user_version').get()?.['user_version']).toBe(999)
})

test('a file that is no database, or no folder, is rejected with an error', async () => {
  const dataDir = await folder()
  await writeFile(join(dataDir, 'curtail.db'), 'no database, but 100 bytes of text. '.repeat(9))
  const unusable = expect.stringMatching(/^DATA_DIR .* cannot be used/)
  expect(await refusal(dataDir)).toMatchObject({ name: 'OperatorError', message: unusable })
  const file = join(dataDir, 'file')
  await writeFile(file, '')
  expect(await refusal(file)).toMatchObject({ name: 'OperatorError', message: unusable })
})

test('500 writes of one turn share one transaction', async () => {
  const metrics = createMetrics()
  const links = createSqliteLinkStore(await opened(await folder(), metrics))
  const given = samples(500)
  await Promise.all(given.map((link) => links.insertIfAbsent(link)))
  const { values } = await metrics.sqliteGroup.get()
  const valueOf = (suffix: string) =>
    values.find(({ metricName }) => metricName.endsWith(suffix))?.value
  expect(valueOf('_sum')).toBe(500)
  expect(valueOf('_count')).toBe(1)
  for (const link of given) expect(await links.find(link.code)).toEqual(link)
})

test('writes are applied in the order of their calls', async () => {
  const links = createSqliteLinkStore(await opened(await folder()))
  const link = sampleLink()
  const { code } = link
  const [, disabled, enabled, erased, seen] = await Promise.all([
    links.insertIfAbsent(link),
    links.setDisabled({ code, disabledAtMs: 5 }),
    links.setDisabled({ code, disabledAtMs: null }),
    links.erase({ code, deletedAtMs: 6 }),
    links.readSerial(code),
  ])
  expect([disabled?.disabledAtMs, enabled?.disabledAtMs]).toEqual([5, null])
  expect(seen).toEqual(erased)
})

test('close() resolves after the pending writes; later writes are rejected', async () => {
  const dataDir = await folder()
  const db = await openDatabase(dataDir, createMetrics())
  const links = createSqliteLinkStore(db)
  const given = samples(50)
  const writes = Promise.all(given.map((link) => links.insertIfAbsent(link)))
  await db.close()
  expect(await writes).toEqual(given.map(({ writerId }) => writerId))
  const late = links.insertIfAbsent(sampleLink())
  await expect(late).rejects.toMatchObject({ name: 'StoreError', outcome: 'not-done' })
  const again = createSqliteLinkStore(await opened(dataDir))
  for (const link of given) expect(await again.find(link.code)).toEqual(link)
})

test('a failed transaction fails its whole group, and the next one succeeds', async () => {
  const dataDir = await folder()
  const links = createSqliteLinkStore(await opened(dataDir))
  const stored = sampleLink()
  await links.insertIfAbsent(stored)
  meddler(dataDir).exec(
    `CREATE TRIGGER breaks BEFORE INSERT ON links WHEN NEW.short_code = 'break'
     BEGIN SELECT RAISE(FAIL, 'broken by the test'); END`,
  )
  const group = [...samples(5), sampleLink({ code: 'break' }), ...samples(5)]
  const ends = await Promise.allSettled(group.map((link) => links.insertIfAbsent(link)))
  for (const end of ends) {
    expect(end).toMatchObject({ status: 'rejected', reason: { outcome: 'not-done' } })
    expect((end as PromiseRejectedResult).reason).toBeInstanceOf(StoreError)
  }
  for (const { code } of group) expect(await links.readSerial(code)).toBeUndefined()
  expect(await links.find(stored.code)).toEqual(stored)
  const next = sampleLink()
  expect(await links.insertIfAbsent(next)).toBe(next.writerId)
})

test('while another connection holds the lock writes fail and reads succeed', async () => {
  const dataDir = await folder()
  const links = createSqliteLinkStore(await opened(dataDir))
  const stored = sampleLink()
  await links.insertIfAbsent(stored)
  const other = meddler(dataDir)
  other.exec('BEGIN IMMEDIATE')
  const refused = sampleLink()
  await expect(links.insertIfAbsent(refused)).rejects.toBeInstanceOf(StoreError)
  expect(await links.find(stored.code)).toEqual(stored)
  other.exec('ROLLBACK')
  expect(await links.insertIfAbsent(refused)).toBe(refused.writerId)
})

test('a full disk fails writes, and loses or splits no group', async () => {
  const dataDir = await folder()
  const filling = startChild(dataDir, 'fill', 800)
  await filling.ended
  const { lines } = filling
  const failed = lines.find((line) => line.startsWith('failed')) ?? 'nothing failed'
  expect(failed).toMatch(/^failed \d+ unknown$/)
  expect(lines).toContain('first there')
  expect(lines.at(-1)).toMatch(/^again (unknown|stored)$/)
  const acknowledged = lines.filter((line) => /^\d+-\d+$/.test(line))
  expect(acknowledged.length).toBeGreaterThan(10)
  const links = createSqliteLinkStore(await opened(dataDir))
  for (const code of acknowledged) expect(await links.find(code)).toBeDefined()
  const group = failed.split(' ')[1] ?? ''
  const reads = Array.from({ length: 10 }, (_, i) => links.find(`${group}-${String(i)}`))
  const there = (await Promise.all(reads)).filter((link) => link !== undefined)
  expect([0, 10]).toContain(there.length)
})

test.each([1, 2, 3])('a kill, round %i, loses no write that was acknowledged', async (round) => {
  const dataDir = await folder()
  const inserting = startChild(dataDir, 'insert')
  await inserting.untilLines(200 * round)
  await inserting.kill()
  const acknowledged = inserting.lines.filter((line) => /^\d-\d+$/.test(line))
  expect(acknowledged.length).toBeGreaterThanOrEqual(200 * round - 1)
  const links = createSqliteLinkStore(await opened(dataDir))
  for (const code of acknowledged) expect((await links.find(code))?.code).toBe(code)
  const next = sampleLink({ code: 'after-kill' })
  expect(await links.insertIfAbsent(next)).toBe(next.writerId)
})
