// Runs the commands of the runbooks as printed, by a shell in a temporary folder, against the
// release; also reads the pages.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from '../kit/runbook-commands.ts'
import { type CommandResult, getObject, pathWithHelm, tryRun } from './cluster.ts'
import { FULL_NAME, podsOf, RELEASE } from './release.ts'

const COMMAND_SECONDS_MAX = 120
/** More pods of a component than the tests install. */
const PODS = '3'
/** More memory than the chart sets for Envoy and for the Redis with the counters. */
const AMOUNTS = { MEBIBYTES: '800', MEMORY: '128mb', LIMIT: '1Gi' }
const runbooks = new URL('../../docs/runbooks/', import.meta.url)
const chart = fileURLToPath(new URL('../../charts/curtail', import.meta.url))

/** Runs the commands of an operator. */
export interface RunbookRunner {
  /** The folder of the operator's files, such as `tls.crt`. */
  readonly folder: string
  /** Runs a line of a page; `names` are values that only the operator has, such as SECRET. */
  readonly run: (line: string, placeholders?: Placeholders) => Promise<CommandResult>
  /** Saves the bytes of a code secret to a file, as docs/operations.md describes. */
  readonly saveCodeSecret: (secret: string) => Promise<void>
  /** Deletes the folder. */
  readonly close: () => Promise<void>
}

/** Values for the words in capitals that a page leaves open. */
export interface Placeholders {
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

/** Creates a runner and its folder. */
export async function createRunbookRunner(): Promise<RunbookRunner> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-runbooks-'))
  const path = await pathWithHelm()
  return {
    folder,
    async run(line, { names = {} } = {}) {
      const pod = (await podsOf('create'))[0] ?? ''
      const values = { POD: pod, RELEASE, CHART: chart, COUNT: PODS, ...AMOUNTS, ...names }
      const filled = Object.entries(values).reduce(
        (text, [name, value]) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), value),
        line,
      )
      const lines = [`cd ${folder}`, `export PATH=${path} NS=${RELEASE} R=${FULL_NAME}`, filled]
      const timeout = ['-k', '5', String(COMMAND_SECONDS_MAX), 'sh', '-c', lines.join('\n')]
      return tryRun('timeout', timeout)
    },
    async saveCodeSecret(secret) {
      const args = ['secret', secret, '--namespace', RELEASE]
      const { data } = await getObject<{ data: { secret: string } }>(...args)
      await writeFile(join(folder, 'code-secret'), Buffer.from(data.secret, 'base64'))
    },
    close: () => rm(folder, { recursive: true }),
  }
}
