// The completion scripts in a real bash and a real zsh.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findZsh } from '../../dependencies/zsh.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'

const run = promisify(execFile)
const SETUP_MS_MAX = 600_000
const TEST_MS_MAX = 180_000
const zshProgram = fileURLToPath(new URL('../../kit/processes/complete.zsh', import.meta.url))

let folder: string
let zsh: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-completion-'))
  zsh = await findZsh()
  await writeFile(join(folder, 'links.csv'), '')
  for (const shell of ['bash', 'zsh']) {
    const script = await runCurtail(['completion', shell])
    expect([script.exitCode, script.stderr]).toEqual([0, ''])
    await writeFile(join(folder, `script.${shell}`), script.stdout)
  }
}, SETUP_MS_MAX)

afterAll(() => rm(folder, { recursive: true }))

/** The words that bash offers; its words are separated by spaces and by `=`. */
async function completeInBash(line: string): Promise<string[]> {
  const program = [
    'source "$1"; shift',
    'complete -p curtail > /dev/null',
    'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))',
    '_curtail',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n')
  const words = line.split(' ').flatMap((word) => word.split(/(=)/))
  if (line.endsWith('=')) words.pop()
  const script = join(folder, 'script.bash')
  const { stdout } = await run('bash', ['--norc', '-ec', program, 'bash', script, ...words], {
    cwd: folder,
  })
  return stdout.split('\n').filter((word) => word !== '')
}

const offered: Record<string, readonly string[]> = {
  'curtail ratelimit': ['ratelimit', 'ratelimit-check'],
  'curtail link ': ['create', 'list', 'show', 'disable', 'enable', 'delete', '--help'],
  'curtail pool ': ['status', 'raise', '--help'],
  'curtail link show ': ['--json', '--help'],
  'curtail link list --sta': ['--state'],
  'curtail link list --state=': ['active', 'blocked', 'expired', 'disabled', 'deleted'],
  'curtail link list --state=dis': ['disabled'],
  'curtail limit top --by h': ['hits'],
  'curtail link list --rate ': [],
  'curtail import li': ['links.csv'],
  'curtail import links.csv --report=li': ['links.csv'],
  'curtail import --format csv li': ['links.csv'],
  'curtail import --format csv --r': ['--rate', '--report'],
  'curtail import --format=csv li': ['links.csv'],
  'curtail standalone ': ['--greet', '--help'],
  'curtail completion ': ['bash', 'zsh', '--help'],
  'curtail help smo': ['smoke'],
  'curtail nonsense ': [],
}

test(
  'bash completes roles, commands, options, values and files',
  async () => {
    for (const [line, words] of Object.entries(offered)) {
      expect([line, await completeInBash(line)]).toEqual([line, words])
    }
    expect(await completeInBash('curtail import --format csv ')).toEqual(
      expect.arrayContaining(['--rate', '--report', 'links.csv', '--help']),
    )
    expect(await completeInBash('curtail ')).toEqual(
      expect.arrayContaining(['standalone', 'link', 'help', 'completion', '--version']),
    )
  },
  TEST_MS_MAX,
)

const completed: Record<string, string> = {
  'curtail ratelimit-c': 'curtail ratelimit-check ',
  'curtail link sh': 'curtail link show ',
  'curtail pool r': 'curtail pool raise ',
  'curtail link list --sta': 'curtail link list --state ',
  'curtail link list --state=dis': 'curtail link list --state=disabled ',
  'curtail limit top --by h': 'curtail limit top --by hits ',
  'curtail import li': 'curtail import links.csv ',
  'curtail import --format csv li': 'curtail import --format csv links.csv ',
  'curtail import --format csv --ra': 'curtail import --format csv --rate ',
  'curtail import --format=csv li': 'curtail import --format=csv links.csv ',
  'curtail standalone --g': 'curtail standalone --greet ',
  'curtail help smo': 'curtail help smoke ',
  'curtail link list --rate 1': 'curtail link list --rate 1',
}

test(
  'zsh completes roles, commands, options, values and files',
  async () => {
    const lines = Object.keys(completed)
    const running = run(zsh, ['-f', zshProgram, join(folder, 'script.zsh')], {
      cwd: folder,
      timeout: TEST_MS_MAX,
    })
    running.child.stdin?.end(lines.map((line) => `${line}\n`).join(''))
    const { stdout } = await running
    const results = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/\r$/, ''))
    expect(Object.fromEntries(lines.map((line, at) => [line, results[at]]))).toEqual(completed)
  },
  TEST_MS_MAX,
)
