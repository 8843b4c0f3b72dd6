// Runs the commands of docs/tour.md as printed and compares their output; only the ports and the
// folder differ.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const run = promisify(execFile)
const COMMANDS_MS_MAX = 60_000
/** A block of commands, and the block of output that may follow it. */
const step = /^```sh\n([^]*?)^```$(?:\n\n^```\n([^]*?)^```$)?/gm

let folder: string
let service: Standalone | undefined
let steps: readonly { readonly commands: string; readonly output: string }[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-tour-'))
  const page = await readFile('docs/tour.md', 'utf8')
  steps = [...page.matchAll(step)].map(([, commands = '', output = '']) => ({ commands, output }))
})

afterAll(async () => {
  await service?.stop()
  await rm(folder, { recursive: true, force: true })
})

test('the commands of the tour have the output that it shows', async () => {
  expect(steps.length).toBeGreaterThan(6)
  for (const { commands, output } of steps) {
    if (commands.endsWith('npm start\n')) {
      service = await startStandalone({ env: settingsOf(local(commands)) })
      continue
    }
    const env = { ...process.env, API_URL: service?.baseUrl, ADMIN_URL: service?.adminUrl }
    const { stdout } = await run('sh', ['-ec', local(commands)], { env, timeout: COMMANDS_MS_MAX })
    expect(stdout).toMatch(patternOf(local(output)))
  }
}, 300_000)

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
