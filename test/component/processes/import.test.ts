// `curtail import` against a real standalone process: every format, redirects of imported links, an
// export that is imported elsewhere, kills of the command, and the errors of its command line.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { LinkRow } from '../../../src/transfer/link-row.ts'
import { type Client, openClient } from '../../kit/http/client.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { newSeed } from '../../kit/random.ts'
import { formatFixtures } from '../../kit/transfer/format-fixtures.ts'
import { importWithKills } from '../../soak/import.ts'

const TEST_MS_MAX = 180_000
const root = fileURLToPath(new URL('../../..', import.meta.url))
const target = 'https://example.com/a?b=%7e#c'

let folder: string
let service: Standalone
let client: Client

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-import-'))
  service = await startStandalone()
  client = await openClient(service.port)
}, TEST_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
  await rm(folder, { recursive: true })
}, TEST_MS_MAX)

const operate = (to: Pick<Standalone, 'adminUrl'>, ...args: readonly string[]) =>
  runCurtail(args, { ADMIN_URL: to.adminUrl })

async function writeInput(name: string, content: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, content)
  return path
}

interface Reported {
  readonly row: number
  readonly short_code: string | null
  readonly result: string
  readonly code: string | null
  readonly detail: string | null
}

async function reportOf(file: string): Promise<Reported[]> {
  const lines = (await readFile(`${file}.report.ndjson`, 'utf8')).split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Reported)
}

/** The numbers in the summary by their headings. */
function summaryOf({ stdout }: Run): Record<string, number> {
  const [headings = [], values = []] = stdout.split('\n').map((line) => line.split(/ {2,}/))
  return Object.fromEntries(headings.map((name, i) => [name, Number(values[i])]))
}

async function linkAt(to: Standalone, code: string): Promise<LinkRow> {
  return (await (await fetch(`${to.adminUrl}/admin/links/${code}`)).json()) as LinkRow
}

describe.each(formatFixtures)('$format, $about', ({ format, about, file: content, rows }) => {
  test('is imported; faults and replaced codes are reported; a retry is possible', async () => {
    const file = await writeInput(`${format} ${about.replaceAll('/', ' ')}`, content)
    const run = await operate(service, 'import', file, '--format', format)
    const links = rows.flatMap((row) => (row instanceof RegExp ? [] : [row]))
    const faults = rows.filter((row) => row instanceof RegExp)
    expect(run.exitCode).toBe(faults.length > 0 ? 3 : 0)
    const report = await reportOf(file)
    const has = `; ${file}.report.ndjson has the line and the cause of each\n`
    expect(run.stderr.endsWith(has) ? has : run.stderr).toBe(report.length > 0 ? has : '')
    const missing = /rows not imported: (\d+)/.exec(run.stderr)?.[1] ?? 0
    expect(Number(missing)).toBe(faults.length)
    const codes = new Map(report.map(({ short_code, code }) => [short_code, code]))
    for (const link of links) {
      const code = codes.get(link.short_code) ?? link.short_code
      const stored = await linkAt(service, code)
      const created_at = link.created_at ?? stored.created_at
      expect(stored).toEqual({ ...link, short_code: code, created_at })
    }
    const invalid = report.filter(({ result }) => result === 'invalid')
    expect(invalid.map(({ detail }) => detail)).toEqual(
      faults.map((fault): unknown => expect.stringMatching(fault)),
    )
    const retried = await operate(service, 'import', file, `--format=${format}`)
    const { ROWS, EXISTS, REPLACED, INVALID } = summaryOf(retried)
    const expected = [rows.length, links.length, faults.length]
    expect([ROWS, (EXISTS ?? 0) + (REPLACED ?? 0), INVALID]).toEqual(expected)
  })
})

test('an imported link redirects immediately, although its code was not found before', async () => {
  const statusOf = async (code: string) => (await client.resolve(code)).status
  expect(await statusOf('fresh')).toBe(404)
  const lines = ['fresh', 'off'].map((short_code, i) =>
    JSON.stringify({ short_code, long_url: target, state: i === 0 ? 'active' : 'disabled' }),
  )
  const file = await writeInput('fresh.ndjson', lines.join('\n'))
  const run = await operate(service, 'import', file, '--format', 'ndjson')
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  expect(summaryOf(run)).toMatchObject({ ROWS: 2, CREATED: 2 })
  expect(await statusOf('fresh')).toBe(302)
  expect(await statusOf('off')).toBe(404)
  const location = await fetch(`${service.baseUrl}/fresh`, { redirect: 'manual' })
  expect(location.headers.get('Location')).toBe(target)
})

test('the standard input is imported, and its report is written to stderr', async () => {
  const args = roleArguments('import', '-', '--format', 'csv', '--rate', '100')
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...inherited, ADMIN_URL: service.adminUrl },
    stdio: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  child.stdin.end(`short_code,long_url\npiped,${target}\na-long-old-code,${target}\n`)
  const exitCode = await new Promise((resolve) => child.on('close', resolve))
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^ROWS .*\n2 /)
  const { short_code, code, result } = JSON.parse(stderr) as Reported
  expect([short_code, result]).toEqual(['a-long-old-code', 'created'])
  expect((await client.resolve('piped')).status).toBe(302)
  expect((await client.resolve(code ?? '')).status).toBe(302)
})

test('conflicts are reported, nothing is changed, and the exit code is 3', async () => {
  await client.create({ long_url: target, custom_alias: 'mine' })
  const other = 'https://other.test/'
  const file = await writeInput(
    'conflict.csv',
    `short_code,long_url\nmine,${other}\nyours,${other}\n`,
  )
  const report = join(folder, 'own-report')
  const run = await operate(service, 'import', file, '--format', 'csv', '--report', report)
  expect(run.exitCode).toBe(3)
  expect(summaryOf(run)).toMatchObject({ ROWS: 2, CREATED: 1, CONFLICT: 1 })
  expect(JSON.parse(await readFile(report, 'utf8'))).toMatchObject({
    ...{ row: 1, line: 2, short_code: 'mine' },
  })
  expect(run.stderr).toBe(
    `curtail: rows not imported: 1; ${report} has the line and the cause of each\n`,
  )
  expect((await linkAt(service, 'mine')).long_url).toBe(target)
})

const RECORDS = 'SELECT * FROM links ORDER BY short_code'

test(
  'an export that is imported elsewhere has the same links',
  async () => {
    const [from, to] = [await startStandalone(), await startStandalone()]
    const source = await openClient(from.port)
    try {
      const create = async (alias: string, more: object = {}) =>
        source.create({ long_url: `${target}${alias}`, custom_alias: alias, ...more })
      for (const alias of ['kept', '-_-', 'off', 'erased']) await create(alias)
      await create('limited', { ttl_days: 3 })
      await source.create({ long_url: 'https://exämple.test/ü' })
      const url = `${from.adminUrl}/admin/links`
      await fetch(`${url}/off/disable`, { method: 'POST' })
      await fetch(`${url}/erased`, { method: 'DELETE' })
      const exported = await operate(from, 'export')
      const file = await writeInput('export.ndjson', exported.stdout)
      const run = await operate(to, 'import', file, '--format', 'ndjson')
      expect([run.exitCode, summaryOf(run)['CREATED']]).toEqual([0, 6])
      expect((await operate(to, 'export')).stdout).toBe(exported.stdout)
      const db = new DatabaseSync(join(to.dataDir, 'curtail.db'), { readOnly: true })
      const erased = db
        .prepare(RECORDS)
        .all()
        .filter((row) => row['deleted_at'] !== null)
      db.close()
      expect(erased).toMatchObject([{ short_code: 'erased', long_url: null }])
    } finally {
      source.close()
      await from.stop()
      await to.stop()
    }
  },
  TEST_MS_MAX,
)

test(
  'an import that is killed five times stores the same as one that is not',
  async () => {
    const seed = newSeed()
    const lines: string[] = [`seed ${seed}`]
    const log = (line: string) => void lines.push(line)
    const given = { rows: 2000, rowsPerSecond: 250, seed, log }
    const sum = await importWithKills(given).catch((error: unknown) => {
      throw new Error(lines.join('\n'), { cause: error })
    })
    expect(sum.records).toBeGreaterThan(1500)
    expect(sum.reported).toBeGreaterThan(100)
  },
  TEST_MS_MAX,
)

describe('the command exits with', () => {
  const usage: Record<string, [args: readonly string[], expected: RegExp]> = {
    'no file': [[], /import requires FILE\|-: none is given/],
    'two files': [['a', 'b', '--format=csv'], /import takes only FILE\|-: "b" is extra/],
    'no format': [['a'], /--format=FORMAT, one of yourls, shlink, .*ndjson: none is given/],
    'an unknown format': [['a', '--format', 'xml'], /: it is "xml"/],
    'a bad rate': [['a', '--format=csv', '--rate=0'], /--rate must be an integer from 1 to/],
    'an unknown option': [['a', '--format=csv', '--force'], /--force/],
    'a report in its file': [['a', '--format=csv', '--report=./a'], /--report must not be/],
  }
  test.each(Object.entries(usage))('2 for %s', async (_, [args, expected]) => {
    const run = await operate(service, 'import', ...args)
    expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
    expect([run.exitCode, run.stdout]).toEqual([2, ''])
    expect(run.stderr).toMatch(expected)
  })

  test('1 if the file cannot be read, is damaged, or the token is wrong', async () => {
    const damaged = await writeInput('damaged.csv', 'short_code,long_url\na,"https://a')
    const guarded = await startStandalone({ env: { ADMIN_TOKEN: 'a-token-of-some-length' } })
    const link = await writeInput('link.csv', `short_code,long_url\na,${target}\n`)
    const cases: readonly [to: Standalone, file: string, expected: RegExp][] = [
      [service, join(folder, 'none.csv'), /cannot read .*none\.csv/],
      [service, folder, /EISDIR|directory/],
      [service, damaged, /line 2 is damaged: .*; correct the file, then run the same command$/m],
      [guarded, link, /401.*ADMIN_TOKEN/],
    ]
    try {
      for (const [to, file, expected] of cases) {
        const run = await operate(to, 'import', file, '--format', 'csv')
        expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
        expect([run.exitCode, run.stdout]).toEqual([1, ''])
        expect(run.stderr).toMatch(expected)
      }
    } finally {
      await guarded.stop()
    }
  })
})
