// Runs the commands of docs/tour.md as printed, those of a terminal in one shell, and compares
// their output; only the ports and the folder differ.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const run = promisify(execFile)
const COMMANDS_MS_MAX = 600_000
const SEPARATOR = '--- end of a block ---\n'
/** A block of commands, and the block of output that may follow it. */
const step = /^```sh\n([^]*?)^```$(?:\n\n^```\n([^]*?)^```$)?/gm

let folder: string
let service: Standalone | undefined
let steps: readonly Step[]

interface Step {
  readonly commands: string
  readonly output: string
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-tour-'))
  const page = await readFile('docs/tour.md', 'utf8')
  steps = [...page.matchAll(step)].map(([, commands = '', output = '']) => ({ commands, output }))
})

afterAll(async () => {
  await service?.stop()
  await rm(folder, { recursive: true, force: true })
})

test(
  'the commands of the tour have the output that it shows',
  async () => {
    expect(steps.length).toBeGreaterThan(6)
    const start = steps.findIndex(({ commands }) => commands.endsWith('npm start\n'))
    await runInOneShell(steps.slice(0, start))
    service = await startStandalone({ env: settingsOf(local(steps[start]?.commands ?? '')) })
    await runInOneShell(steps.slice(start + 1))
  },
  COMMANDS_MS_MAX + 60_000,
)

async function runInOneShell(blocks: readonly Step[]): Promise<void> {
  const env = { ...process.env, API_URL: service?.baseUrl, ADMIN_URL: service?.adminUrl }
  const separated = blocks.map(({ commands }) => `${local(commands)}printf '%s' '${SEPARATOR}'\n`)
  const args = ['-ec', separated.join('')]
  const { stdout } = await run('sh', args, { env, timeout: COMMANDS_MS_MAX })
  const outputs = stdout.split(SEPARATOR)
  for (const [at, { output }] of blocks.entries()) {
    expect(outputs[at]).toMatch(patternOf(local(output)))
  }
}

/** A piece of the page with this run's folder and ports. */
function local(piece: string): string {
  return piece
    .replaceAll(/\btour\b/g, folder)
    .replaceAll('http://localhost:8080', service?.linkBase ?? '')
    .replaceAll('http://localhost:9090', service?.adminUrl ?? '')
}

/** The settings before `npm start`, without the folder of the database. */
function settingsOf(command: string): Record<string, string> {
  const words = command.trim().split(' ').slice(0, -2)
  const others = words.filter((word) => !word.startsWith('DATA_DIR='))
  return Object.fromEntries(others.map((word) => word.split('=', 2) as [string, string]))
}

/** Matches the output of a page, in which `…` stands for any characters of a line. */
function patternOf(output: string): RegExp {
  const literal = output.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll(/ *… */g, '.*')}$`)
}
