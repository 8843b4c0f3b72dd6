// `curtail import` of a file is killed at random moments, and started with the same arguments until
// it completes. The store must then have the same records as after an import that was not killed,
// and the report must have the same lines. `ROWS=n` sets the size of the file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { createRandom, type Random } from '../kit/random.ts'
import { roleArguments } from '../kit/processes/role-process.ts'
import { type Standalone, startStandalone } from '../kit/processes/standalone.ts'

const FULL_ROWS = 1_000_000
/** The rate while it is killed; the other import has no limit. */
const FULL_RATE = 4000
const UNLIMITED = 1_000_000
const KILLS = 5
/** A start of the command takes about this long. */
const START_MS = 400
/** Rows with the same code are farther from each other than a batch is long. */
const SAME_CODE_ROWS = 1000

const root = fileURLToPath(new URL('../..', import.meta.url))

/** How to import. */
export interface KilledImportOptions {
  readonly rows: number
  readonly rowsPerSecond: number
  readonly seed: number
  readonly log: (line: string) => void
}

/** The result of an import that was killed. */
export interface KilledImports {
  readonly records: number
  readonly reported: number
  /** How often the command continued after rows that a killed one had recorded. */
  readonly continued: number
}

/** Imports a file with and without kills, and compares. Throws if the results differ. */
export async function importWithKills(options: KilledImportOptions): Promise<KilledImports> {
  const { rows, seed, log } = options
  const folder = await mkdtemp(join(tmpdir(), 'curtail-import-'))
  const file = join(folder, 'links.csv')
  const random = createRandom(seed)
  const services = [await startStandalone(), await startStandalone()] as const
  const [killed, reference] = services
  try {
    await writeRows(file, rows, random)
    const continued = await runKilled({ ...options, service: killed, file, random })
    const report = await readFile(`${file}.report.ndjson`, 'utf8')
    await runOnce(reference, file, UNLIMITED)
    log('imported without kills')
    if ((await readFile(`${file}.report.ndjson`, 'utf8')) !== withoutRetries(report)) {
      throw new Error('the report differs from that of an import that was not killed')
    }
    const records = compareRecords(killed, reference)
    return { records, reported: report.split('\n').length - 1, continued }
  } finally {
    for (const service of services) await service.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** A retried row with a replaced code exists; in the other import it was created. */
function withoutRetries(report: string): string {
  return report.replaceAll('"result":"exists"', '"result":"created"')
}

async function writeRows(file: string, rows: number, random: Random): Promise<void> {
  const stream = createWriteStream(file)
  stream.write('short_code,long_url,created_at,expires_at,creator_id,state\n')
  for (let i = 0; i < rows; i++) {
    if (!stream.write(`${rowOf(i, random)}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'finish')
}

/** A row of a random kind. */
function rowOf(i: number, random: Random): string {
  const code = `s${i.toString(36)}`
  const created = '2026-01-31T12:00:00Z'
  const url = `"https://example.com/${i}?a=1,2"`
  const kind = random.int(100)
  if (kind < 80) return `${code},${url},${created},,,active`
  if (kind < 85) return `a-long-code-of-${code},${url},${created},,,`
  if (kind < 90) return `${code},${url},${created},2099-12-31T00:00:00Z,${i},`
  if (kind < 93) return `${code},${url},${created},,,disabled`
  if (kind < 95) return `${code},,${created},,,deleted`
  if (kind < 97) return `${code},ftp://example.com/,${created},,,`
  if (kind < 98) return `${code},${url},${created},2026-02-01T00:00:00Z,,`
  const earlier = Math.max(0, i - SAME_CODE_ROWS - random.int(SAME_CODE_ROWS))
  return `s${earlier.toString(36)},${url},${created},,,`
}

function startImport(service: Standalone, file: string, rowsPerSecond: number) {
  const options = ['--format', 'csv', `--rate=${rowsPerSecond}`]
  const child = spawn(process.execPath, roleArguments('import', file, ...options), {
    cwd: root,
    env: { PATH: process.env['PATH'], ADMIN_URL: service.adminUrl },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const exited = once(child, 'close').then(([code]) => code as number | null)
  return { child, exited, errors: () => errors }
}

/** Runs the import to its end; its file has conflicts and invalid rows, so it exits with 3. */
async function runOnce(service: Standalone, file: string, rowsPerSecond: number): Promise<void> {
  const { exited, errors } = startImport(service, file, rowsPerSecond)
  const code = await exited
  if (code !== 3) throw new Error(`import exited with ${String(code)}: ${errors()}`)
}

async function runKilled(
  given: KilledImportOptions & {
    readonly service: Standalone
    readonly file: string
    readonly random: Random
  },
): Promise<number> {
  const { service, file, random, rows, rowsPerSecond, log } = given
  /** So that the import cannot complete before all kills. */
  const runMsMax = Math.floor((rows / rowsPerSecond / (KILLS + 1)) * 1000)
  let continued = 0
  for (let kill = 0; kill < KILLS; kill++) {
    if (await exists(`${file}.progress`)) continued++
    const { child, exited } = startImport(service, file, rowsPerSecond)
    const runMs = START_MS + random.int(runMsMax)
    const isComplete = await Promise.race([exited.then(() => true), sleep(runMs, false)])
    if (isComplete) throw new Error('the import completed before all kills: it is too fast')
    child.kill('SIGKILL')
    await exited
    log(`killed after ${runMs} ms`)
  }
  if (await exists(`${file}.progress`)) continued++
  await runOnce(service, file, rowsPerSecond)
  log('completed after the kills')
  if (await exists(`${file}.progress`)) throw new Error('the progress file was not deleted')
  return continued
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

const RECORDS = `SELECT short_code, long_url, created_at, expires_at,
  CAST(creator_id AS TEXT) AS creator_id, writer_id, disabled_at IS NULL AS is_enabled,
  deleted_at IS NULL AS is_present FROM links ORDER BY short_code`

/** Compares the records of two stores one by one; returns their number. */
function compareRecords(a: Standalone, b: Standalone): number {
  const [left, right] = [a, b].map(({ dataDir }) => {
    return new DatabaseSync(join(dataDir, 'curtail.db'), { readOnly: true })
  })
  const others = right?.prepare(RECORDS).iterate()
  let count = 0
  for (const record of left?.prepare(RECORDS).iterate() ?? []) {
    const other = others?.next().value
    if (JSON.stringify(record) !== JSON.stringify(other)) {
      throw new Error(`${JSON.stringify(record)} is ${JSON.stringify(other)} without kills`)
    }
    count++
  }
  if (others?.next().done !== true) throw new Error('records are missing after the kills')
  left?.close()
  right?.close()
  return count
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const rows = Number(process.env['ROWS'] ?? FULL_ROWS)
  const rowsPerSecond = Math.min(FULL_RATE, Math.ceil(rows / 20))
  const sum = await importWithKills({ ...given, rows, rowsPerSecond })
  given.log(
    `${rows} rows with ${KILLS} kills, ${sum.continued} continued: ${sum.records} records and ` +
      `${sum.reported} reported rows, as without kills`,
  )
}
