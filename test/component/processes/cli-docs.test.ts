// docs/cli.md: its usage is that of the help, its table has the members of --json's output, and
// commands warn if the service has no list.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Role } from '../../../src/process/role.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 120_000
const docs = readFileSync('docs/cli.md', 'utf8')
const target = 'https://example.com/'

let service: Standalone
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-cli-docs-'))
  service = await startStandalone()
}, START_MS_MAX)

afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

/** The roles of main.ts, in its order. */
async function importRoles(): Promise<readonly Role[]> {
  const main = readFileSync('src/main.ts', 'utf8')
  const files = [...main.matchAll(/import\('\.(\/roles\/[\w-]+\.ts)'\)/g)].map(([, file]) => file)
  expect(files.map((file = '') => file.slice('/roles/'.length)).sort()).toEqual(
    readdirSync('src/roles').sort(),
  )
  const modules = files.map((file = '') => import(`../../../src${file}`) as Promise<{ role: Role }>)
  return (await Promise.all(modules)).map(({ role }) => role)
}

test('docs/cli.md has the usage of every role', async () => {
  const usages = (await importRoles()).map((role) => {
    const [usage = ''] = role.renderHelp().split('\n\n')
    return usage.replace(/^Usage: /, '       ').replaceAll(/^ {7}/gm, '')
  })
  const [, documented = ''] = /```\n(curtail standalone[\s\S]*?)\n```/.exec(docs) ?? []
  expect(documented.split('\n')).toEqual(usages.join('\n').split('\n'))
})

/** The members that the table has for a command. */
function membersOf(command: string): string[] {
  const row = docs.split('\n').find((line) => line.startsWith(`| \`${command}\``)) ?? ''
  return [...(row.split('|')[2] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
}

test('docs/cli.md has the output of every command with the option --json', async () => {
  const commands = new Set<string>()
  for (const role of await importRoles()) {
    const [, name = ''] = /^Usage: curtail ([\w-]+)/.exec(role.renderHelp()) ?? []
    for (const [command, { flags = {} }] of Object.entries(role.commands)) {
      if ('json' in flags) commands.add([name, command].join(' ').trim())
    }
  }
  const rows = [...docs.matchAll(/^\| `([a-z -]+)` +\|/gm)].map(([, name = '']) => name)
  expect([...rows, 'export'].sort()).toEqual([...commands].sort())
})

/** Commands whose row also has other outputs. */
const hasFurtherMembers: ReadonlySet<string> = new Set([
  'block list',
  'ratelimit-check',
  'link list',
  'link show',
])

/** Commands that print one array of objects. */
const printsArray: ReadonlySet<string> = new Set(['pool status', 'limit top'])

/** Commands in an order in which they succeed; FOLDER is a temporary folder. */
const outputs: readonly (readonly [command: string, args: string])[] = [
  ['link create', `${target} --alias=abc`],
  ['link list', ''],
  ['link show', 'abc'],
  ['link delete', 'abc'],
  ['key create', 'shop'],
  ['key list', ''],
  ['key revoke', 'shop'],
  ['block add', 'evil.example'],
  ['block list', ''],
  ['block remove', 'evil.example none.example'],
  ['block import', 'FOLDER/hosts'],
  ['pool status', ''],
  ['import', 'FOLDER/links.csv --format=csv'],
  ['ratelimit-check', 'src/limits/standalone.yaml --descriptor=route=create,client=192.0.2.1'],
]

test(
  'commands with --json print one object per line, or one array, with the members in docs/cli.md',
  async () => {
    await writeFile(join(folder, 'hosts'), 'evil.example\n')
    await writeFile(join(folder, 'links.csv'), `short_code,long_url\nimported,${target}\n`)
    const env = {
      ...{ API_URL: service.baseUrl, ADMIN_URL: service.adminUrl },
      ...{ API_KEYS: join(folder, 'keys'), BLOCKED_TARGETS: join(folder, 'blocked') },
    }
    for (const [command, args] of outputs) {
      const line = `${command} ${args.replaceAll('FOLDER', folder)}`.trim()
      const { stdout, exitCode } = await runCurtail([...line.split(' '), '--json'], env)
      const lines = stdout.trimEnd().split('\n')
      const values = lines.map((one) => JSON.parse(one) as object | readonly object[])
      expect([command, exitCode]).toEqual([command, 0])
      const arrays = values.map((value) => Array.isArray(value))
      expect([command, arrays]).toEqual([command, lines.map(() => printsArray.has(command))])
      const [members = []] = values.flat().map((one) => Object.keys(one))
      const documented = membersOf(command)
      if (hasFurtherMembers.has(command))
        expect(members).toEqual(documented.slice(0, members.length))
      else expect([command, members]).toEqual([command, documented])
    }
  },
  TEST_MS_MAX,
)

test.each([
  ['BLOCKED_TARGETS', 'block add other.example', /^1 entry added/],
  ['API_KEYS', 'key create other', /^curtail_/],
])('a warning names %s if the service does not read the list', async (name, args, expected) => {
  const env = { ADMIN_URL: service.adminUrl, [name]: join(folder, `unread-${name}`) }
  const { exitCode, stdout, stderr } = await runCurtail(args.split(' '), env)
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(expected)])
  expect(stderr.split('\n')[0]).toBe(
    `curtail: the list is changed, but the service at ${service.adminUrl} does not read it, ` +
      `because its setting ${name} is unset: set it to the path of the list, and restart ` +
      'the service',
  )
})

test('link list --state=blocked warns that the service has loaded no blocked targets', async () => {
  const env = { API_URL: service.baseUrl, ADMIN_URL: service.adminUrl }
  expect((await runCurtail(['link', 'create', target], env)).exitCode).toBe(0)
  const run = await runCurtail(['link', 'list', '--state=blocked'], env)
  expect([run.exitCode, run.stdout]).toEqual([0, expect.stringMatching(/matched 0\n$/)])
  const cause = `the service at ${service.adminUrl} has loaded no blocked targets, or is version`
  expect(run.stderr).toMatch(
    new RegExp(`^curtail: \\d+ active links are not checked: ${cause} .*\n$`),
  )
  const others = await runCurtail(['link', 'list', '--state=blocked', '--creator=7'], env)
  expect([others.exitCode, others.stderr]).toEqual([0, '']) // no link has this creator
})
