// A person who follows the runbooks: their pages, and commands run as printed, by a shell in a
// folder of its own, against the release.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from '../parts/runbook-commands.ts'
import { getObject, pathWithHelm, type Ran, tryRun } from './cluster.ts'
import { FULL_NAME, podsOf, RELEASE } from './release.ts'

const COMMAND_SECONDS_MAX = 120
const runbooks = new URL('../../docs/runbooks/', import.meta.url)
const chart = fileURLToPath(new URL('../../charts/curtail', import.meta.url))

/** A reader at work. */
export interface Reader {
  /** Where files of theirs lie, such as `tls.crt`. */
  readonly folder: string
  /** Runs a line of a page; `names` says what only the reader knows, such as POD. */
  readonly run: (line: string, how?: Following) => Promise<Ran>
  /** Keeps the bytes of a Secret for codes, as docs/operations.md says. */
  readonly keepCodeSecret: (secret: string) => Promise<void>
  readonly end: () => Promise<void>
}

/** What stands for the words that a page leaves open. */
export interface Following {
  readonly names?: Readonly<Record<string, string>>
}

/** The page of each alert. */
export async function readPages(): Promise<readonly Page[]> {
  const names = (await readdir(runbooks)).filter((name) => name !== 'README.md')
  return Promise.all(
    names.sort().map(async (name) => {
      return { name, text: await readFile(new URL(name, runbooks), 'utf8') }
    }),
  )
}

/** Gives a reader a folder. */
export async function createReader(): Promise<Reader> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-runbooks-'))
  const path = await pathWithHelm()
  return {
    folder,
    async run(line, { names = {} } = {}) {
      const known = { POD: (await podsOf('create'))[0] ?? '', RELEASE, CHART: chart, ...names }
      const filled = Object.entries(known).reduce(
        (text, [name, value]) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), value),
        line,
      )
      const lines = [`cd ${folder}`, `export PATH=${path} NS=${RELEASE} R=${FULL_NAME}`, filled]
      const limited = ['-k', '5', String(COMMAND_SECONDS_MAX), 'sh', '-c', lines.join('\n')]
      return tryRun('timeout', limited)
    },
    async keepCodeSecret(secret) {
      const asked = ['secret', secret, '--namespace', RELEASE]
      const { data } = await getObject<{ data: { secret: string } }>(...asked)
      await writeFile(join(folder, 'code-secret'), Buffer.from(data.secret, 'base64'))
    },
    end: () => rm(folder, { recursive: true }),
  }
}
