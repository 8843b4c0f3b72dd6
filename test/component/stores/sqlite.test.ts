// What the standalone database does beyond the contract of the stores: durability, the lock of the
// folder, writes that share a transaction, and recovery from a full disk and from a kill.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
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

/** The error of opening the database; undefined if it can be opened. */
async function openError(dataDir: string): Promise<unknown> {
  try {
    await (await openDatabase(dataDir, createMetrics())).close()
    return undefined
  } catch (error) {
    return error
  }
}

/** Opens another connection to the same file, to inject faults. */
function openOther(dataDir: string): DatabaseSync {
  const db = new DatabaseSync(join(dataDir, 'curtail.db'))
  cleanUps.push(() => {
    if (db.isOpen) db.close()
  })
  return db
}

/** Starts sqlite-child.ts; `limit` = the size limit of its files, in blocks of `ulimit -f`. */
function startChild(dataDir: string, task: string, limit?: number) {
  const command = [process.execPath, program, dataDir, task]
  const args = ['-c', `ulimit -f ${String(limit ?? 'unlimited')}; exec "$@"`, 'sh', ...command]
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line))
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const exited = once(child, 'close')
  cleanUps.push(() => child.kill('SIGKILL'))
  return {
    lines,
    exited,
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    /** Waits until it has printed `count` lines. Throws with its stderr if it exits before. */
    waitForLines: async (count: number) => {
      while (lines.length < count) {
        const line = once(reader, 'line')
        const event = await Promise.race([line, exited.then(() => 'exited')])
        if (event === 'exited') throw new Error(`the child exited: ${errors}`)
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

  const second = await opened(dataDir)
  expect(await createSqliteLinkStore(second).find(link.code)).toEqual(link)
  const intents = createSqliteIntentStore(second, () => 1000)
  expect(await intents.readSerial('k')).toEqual({ ...intent, createdAtMs: 1000 })
  const storedCodes = createSqliteCodeStore(second)
  expect(await storedCodes.readPoolSerial('p')).toEqual(pool)
  expect(await storedCodes.readBlock({ pool: 'p', seq: 1 })).toEqual(['abcdefg'])
  expect([...(await insertSecretIfAbsent(second, 'code', new Uint8Array([9])))]).toEqual([1, 2, 3])
})

test('a folder in use is rejected, and can be opened once its process is killed', async () => {
  const dataDir = await folder()
  const holder = startChild(dataDir, 'hold')
  await holder.waitForLines(1)
  const message = `DATA_DIR ${dataDir} is in use by another process`
  expect(await openError(dataDir)).toEqual(new OperatorError(message))
  await holder.kill()
  await opened(dataDir)
})

test('a database of a newer version is rejected and not changed', async () => {
  const dataDir = await folder()
  await (await openDatabase(dataDir, createMetrics())).close()
  const other = openOther(dataDir)
  other.exec('PRAGMA user_version = 999')
  other.close()
  for (let i = 0; i < 2; i++) {
    const newer = expect.stringMatching(/newer version of Curtail/)
    expect(await openError(dataDir)).toMatchObject({ name: 'OperatorError', message: newer })
  }
  expect(openOther(dataDir).prepare('PRAGMA user_version').get()?.['user_version']).toBe(999)
})

test('a file that is not a database, or not a folder, is rejected with an error', async () => {
  const dataDir = await folder()
  await writeFile(join(dataDir, 'curtail.db'), 'not a database, but many bytes. '.repeat(9))
  const unusable = expect.stringMatching(/^DATA_DIR .* cannot be used/)
  expect(await openError(dataDir)).toMatchObject({ name: 'OperatorError', message: unusable })
  const file = join(dataDir, 'file')
  await writeFile(file, '')
  expect(await openError(file)).toMatchObject({ name: 'ConfigError', message: unusable })
})

test('500 writes of one event-loop turn share one transaction', async () => {
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
  const [, disabled, enabled, erased, read] = await Promise.all([
    links.insertIfAbsent(link),
    links.setDisabled({ code, disabledAtMs: 5 }),
    links.setDisabled({ code, disabledAtMs: null }),
    links.erase({ code, deletedAtMs: 6 }),
    links.readSerial(code),
  ])
  expect([disabled?.disabledAtMs, enabled?.disabledAtMs]).toEqual([5, null])
  expect(read).toEqual(erased)
})

test('a reply that arrives during a long pause of the process is read', async () => {
  const links = createSqliteLinkStore(await opened(await folder()))
  const link = sampleLink()
  const written = links.insertIfAbsent(link)
  await new Promise((resolve) => setImmediate(resolve)) // the write has been sent to the thread
  // Longer than GROUP_MS_MAX of writer.ts; the thread continues.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2700)
  expect(await written).toBe(link.writerId)
})

test('writes in flight while the whole process is stopped for long succeed', async () => {
  const inserting = startChild(await folder(), 'insert')
  await inserting.waitForLines(100)
  inserting.signal('SIGSTOP')
  await sleep(5000) // twice GROUP_MS_MAX of writer.ts
  inserting.signal('SIGCONT')
  await inserting.waitForLines(inserting.lines.length + 100) // a failed write terminates the child
  await inserting.kill()
}, 30_000)

test('close() resolves after the pending writes; later writes are rejected', async () => {
  const dataDir = await folder()
  const db = await openDatabase(dataDir, createMetrics())
  const links = createSqliteLinkStore(db)
  const given = samples(50)
  const writes = Promise.all(given.map((link) => links.insertIfAbsent(link)))
  await db.close()
  expect(await writes).toEqual(given.map(({ writerId }) => writerId))
  const afterClose = links.insertIfAbsent(sampleLink())
  await expect(afterClose).rejects.toMatchObject({ name: 'StoreError', outcome: 'not-done' })
  const reopened = createSqliteLinkStore(await opened(dataDir))
  for (const link of given) expect(await reopened.find(link.code)).toEqual(link)
})

test('a failed transaction fails its whole group, and the next one succeeds', async () => {
  const dataDir = await folder()
  const links = createSqliteLinkStore(await opened(dataDir))
  const stored = sampleLink()
  await links.insertIfAbsent(stored)
  openOther(dataDir).exec(
    `CREATE TRIGGER breaks BEFORE INSERT ON links WHEN NEW.short_code = 'break'
     BEGIN SELECT RAISE(FAIL, 'broken by the test'); END`,
  )
  const group = [...samples(5), sampleLink({ code: 'break' }), ...samples(5)]
  const results = await Promise.allSettled(group.map((link) => links.insertIfAbsent(link)))
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: { outcome: 'not-done' } })
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(StoreError)
  }
  for (const { code } of group) expect(await links.readSerial(code)).toBeUndefined()
  expect(await links.find(stored.code)).toEqual(stored)
  const next = sampleLink()
  expect(await links.insertIfAbsent(next)).toBe(next.writerId)
})

test('writes fail and reads succeed while another connection has the lock', async () => {
  const dataDir = await folder()
  const links = createSqliteLinkStore(await opened(dataDir))
  const stored = sampleLink()
  await links.insertIfAbsent(stored)
  const other = openOther(dataDir)
  other.exec('BEGIN IMMEDIATE')
  const rejected = sampleLink()
  await expect(links.insertIfAbsent(rejected)).rejects.toBeInstanceOf(StoreError)
  expect(await links.find(stored.code)).toEqual(stored)
  other.exec('ROLLBACK')
  expect(await links.insertIfAbsent(rejected)).toBe(rejected.writerId)
})

test('a full disk fails writes, and loses or splits no group', async () => {
  const dataDir = await folder()
  const filling = startChild(dataDir, 'fill', 800)
  await filling.exited
  const { lines } = filling
  const failed = lines.find((line) => line.startsWith('failed')) ?? 'nothing failed'
  expect(failed).toMatch(/^failed \d+ unknown$/)
  expect(lines).toContain('first present')
  expect(lines.at(-1)).toMatch(/^retry (unknown|stored)$/)
  const acknowledged = lines.filter((line) => /^\d+-\d+$/.test(line))
  expect(acknowledged.length).toBeGreaterThan(10)
  const links = createSqliteLinkStore(await opened(dataDir))
  for (const code of acknowledged) expect(await links.find(code)).toBeDefined()
  const group = failed.split(' ')[1] ?? ''
  const reads = Array.from({ length: 10 }, (_, i) => links.find(`${group}-${String(i)}`))
  const found = (await Promise.all(reads)).filter((link) => link !== undefined)
  expect([0, 10]).toContain(found.length)
})

test.each([1, 2, 3])('a killed process loses no acknowledged write: round %i', async (round) => {
  const dataDir = await folder()
  const inserting = startChild(dataDir, 'insert')
  await inserting.waitForLines(200 * round)
  await inserting.kill()
  const acknowledged = inserting.lines.filter((line) => /^\d-\d+$/.test(line))
  expect(acknowledged.length).toBeGreaterThanOrEqual(200 * round - 1)
  const links = createSqliteLinkStore(await opened(dataDir))
  for (const code of acknowledged) expect((await links.find(code))?.code).toBe(code)
  const next = sampleLink({ code: 'after-kill' })
  expect(await links.insertIfAbsent(next)).toBe(next.writerId)
})
