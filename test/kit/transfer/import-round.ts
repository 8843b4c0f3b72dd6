// Imports a file with every kind of row through one create process, and compares what all of them
// export, what the redirect processes return, and what a second import reports.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ADMIN_TOKEN } from '../../stack/serving-role.ts'
import { isRedirectTo, openHttpClients, resolveCode } from '../http/machine-clients.ts'
import type { ManyMachines } from '../processes/many-machines.ts'
import { runCurtail } from '../processes/run-curtail.ts'

/** A row of the file, and what the import must do with it. */
interface ImportRow {
  readonly short_code: string
  readonly long_url: string | null
  readonly created_at?: string
  readonly expires_at?: string
  readonly creator_id?: string
  readonly state?: 'active' | 'disabled' | 'deleted'
}

/** What the rounds returned. */
interface ImportRound {
  readonly exitCodes: readonly (number | null)[]
  /** The summaries of both imports: the numbers by their headings. */
  readonly summaries: readonly Readonly<Record<string, number>>[]
  /** The exported links of the file by process, in the order of the file. */
  readonly exported: readonly (readonly unknown[])[]
  /** The same links, as they must be. */
  readonly expected: readonly unknown[]
  /** The responses to lookups of each link: `redirect` or the status. */
  readonly lookups: Readonly<Record<string, readonly (string | number)[]>>
}

const CREATED = '2026-01-31T12:00:00.000Z'
const EXPIRES = '2099-12-31T00:00:00.000Z'
const COMMAND_MS_MAX = 60_000

/** The rows whose links exist afterwards, by a name. */
function importedRows(prefix: string) {
  const at = (name: string) => ({
    short_code: `${prefix}${name}`,
    long_url: `https://example.com/${prefix}/${name}?a=%7e`,
    created_at: CREATED,
  })
  return {
    active: { ...at('a'), state: 'active' },
    expiring: { ...at('b'), expires_at: EXPIRES, creator_id: '9223372036854775807' },
    disabled: { ...at('c'), state: 'disabled' },
    deleted: { ...at('d'), long_url: null, state: 'deleted' },
    replaced: at('-a-long-code-of-another-program'),
  } as const satisfies Record<string, ImportRow>
}

/** Runs the rounds with codes that start with `prefix`, of at most 8 characters. */
export async function importRound(machines: ManyMachines, prefix: string): Promise<ImportRound> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-import-'))
  const file = join(folder, 'links.ndjson')
  const imported = importedRows(prefix)
  const { active } = imported
  const readers = openHttpClients(machines.redirects)
  try {
    for (const reader of readers.all) await resolveCode(reader, active.short_code) // a miss
    const rows: readonly ImportRow[] = [
      ...Object.values(imported),
      active, // exists
      { ...active, long_url: 'https://other.example/' }, // conflict
      { short_code: `${prefix}e`, long_url: 'ftp://example.com/' }, // invalid
      { ...active, short_code: `${prefix}f`, expires_at: CREATED }, // expired
    ]
    await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
    const run = (at: number, ...args: string[]) => {
      const env = { ADMIN_URL: machines.creates[at]?.adminUrl ?? '', ADMIN_TOKEN }
      return runCurtail(args, env, COMMAND_MS_MAX)
    }
    const first = await run(0, 'import', file, '--format=ndjson')
    const report = await readFile(`${file}.report.ndjson`, 'utf8')
    const code = replacedCodeIn(report, imported.replaced.short_code)
    const links = Object.entries(imported).map(([name, row]) => {
      const short_code = name === 'replaced' ? code : row.short_code
      const defaults = { expires_at: null, creator_id: null, state: 'active' }
      return [name, { ...defaults, ...row, short_code }] as const
    })
    const lookups = links.map(async ([name, { short_code, long_url }]) => {
      const responses = await Promise.all(readers.all.map((one) => resolveCode(one, short_code)))
      const target = long_url ?? ''
      return [name, responses.map((one) => (isRedirectTo(one, target) ? 'redirect' : one.status))]
    })
    const runs = [await run(0, 'export'), await run(1, 'export')]
    const second = await run(1, 'import', file, '--format=ndjson')
    return {
      exitCodes: [first, ...runs, second].map(({ exitCode }) => exitCode),
      summaries: [summaryOf(first.stdout), summaryOf(second.stdout)],
      exported: runs.map(({ stdout }) => {
        const all = stdout.split('\n').filter((line) => line !== '')
        const byCode = new Map(all.map((line) => [codeOf(line), line]))
        return links.map(([, link]) => JSON.parse(byCode.get(link.short_code) ?? 'null') as unknown)
      }),
      expected: links.map(([, link]) => link),
      lookups: Object.fromEntries(await Promise.all(lookups)) as ImportRound['lookups'],
    }
  } finally {
    readers.close()
    await rm(folder, { recursive: true })
  }
}

const codeOf = (line: string) => (JSON.parse(line) as { short_code: string }).short_code

function replacedCodeIn(report: string, shortCode: string): string {
  const lines = report.split('\n').filter((line) => line !== '')
  const entries = lines.map((line) => JSON.parse(line) as { short_code: string; code: string })
  const entry = entries.find(({ short_code }) => short_code === shortCode)
  if (entry === undefined) throw new Error(`the report has no replaced code: ${report}`)
  return entry.code
}

function summaryOf(stdout: string): Record<string, number> {
  const [headings = [], values = []] = stdout.split('\n').map((line) => line.split(/ {2,}/))
  return Object.fromEntries(headings.map((name, i) => [name, Number(values[i])]))
}
