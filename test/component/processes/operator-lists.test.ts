// The commands `key` and `block` on files, as processes: what they print, what they write, and that
// concurrent and killed commands damage no list.
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parseApiKeys } from '../../../src/create/api-keys.ts'
import { ENTRIES_MAX } from '../../../src/resolve/blocked/build-blocked-table.ts'
import { pause } from '../../../src/resilience/deadline.ts'
import { findStrace } from '../../dependencies/strace.ts'
import { type ActionSink, startActionSink } from '../../kit/processes/action-sink.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'

const TEST_MS_MAX = 180_000
const INSTALL_MS_MAX = 600_000
const HOSTS_OF_FILE = 500_000
/** Longer than the start of a command, and shorter than its wait for the lock. */
const LOCKED_MS = 5000

let folder: string
let sink: ActionSink

beforeEach(async () => {
  sink = await startActionSink()
  folder = await mkdtemp(join(tmpdir(), 'curtail-lists-'))
})
afterEach(async () => {
  sink.close()
  await rm(folder, { recursive: true })
})

const pathOf = (name: string) => join(folder, name)
const environment = () => {
  const files = { API_KEYS: pathOf('keys'), BLOCKED_TARGETS: pathOf('blocked') }
  return { ...files, ADMIN_URL: sink.url }
}
const run = (...args: string[]) => runCurtail(args, environment())
const contentOf = (name: string) => readFile(pathOf(name), 'utf8')
const printed = (stdout: string) => ({ exitCode: 0, stdout, stderr: '' })
const rowsOf = ({ stdout }: Run) => stdout.split('\n').map((line) => line.split(/ {2,}/))
/** Runs a command that fails; returns its lines on stderr. */
const linesOfFailed = async (exitCode: number, ...args: string[]) => {
  const result = await run(...args)
  expect([result.exitCode, result.stdout]).toEqual([exitCode, ''])
  return result.stderr.trimEnd().split('\n')
}

test(
  'key create prints only the key on stdout; the list contains its hash',
  async () => {
    await writeFile(pathOf('keys'), '# partners\n')
    const created = await run('key', 'create', 'shop', '--creator=42', '--expires=2099-01-31')
    expect(created.stdout).toMatch(/^curtail_[\w-]{43}\n$/)
    expect(created.stderr).toMatch(
      /^key shop created for creator 42; it expires at 2099-01-31T00:00:00Z\. [^\n]*\n$/,
    )
    const random = await run('key', 'create', 'other')
    const [, creator = ''] = /for creator (\d+); it does not expire/.exec(random.stderr) ?? []
    const content = await contentOf('keys')
    const { value, entries, faults } = parseApiKeys([{ path: 'keys', content }])
    expect([entries, faults]).toEqual([2, []])
    const found = [created, random].map(({ stdout }) => value.find(stdout.trim(), Date.now()))
    expect(found).toMatchObject([
      { name: 'shop', creatorId: 42n },
      { name: 'other', creatorId: BigInt(creator) },
    ])
    expect(content).toMatch(/^# partners\n/)
    expect(content).not.toContain(created.stdout.trim())
    const table = await run('key', 'list')
    expect(rowsOf(table).slice(0, 2)).toEqual([
      ['NAME', 'CREATOR', 'EXPIRES', 'STATE'],
      ['shop', '42', '2099-01-31T00:00:00Z', 'active'],
    ])
    const json = await run('key', 'list', '--json')
    expect(JSON.parse(`[${json.stdout.trim().replaceAll('\n', ',')}]`)).toMatchObject([
      { name: 'shop', creator_id: '42', expires_at: '2099-01-31T00:00:00Z', state: 'active' },
      { name: 'other', creator_id: creator, expires_at: null, state: 'active' },
    ])
    expect(table.stdout + json.stdout).not.toMatch(/sha256|[0-9a-f]{32}/)
    const { stdout, stderr } = await run('key', 'revoke', 'shop', 'other')
    const hints = `^key shop .* list --creator=42 .*\nkey other .* disable --creator=${creator} `
    expect(stdout).toBe('shop revoked\nother revoked\n')
    expect(stderr).toMatch(new RegExp(hints))
    expect(await contentOf('keys')).toBe('# partners\n')
  },
  TEST_MS_MAX,
)

test(
  'a key that exists or does not exist is an error, and nothing changes',
  async () => {
    await run('key', 'create', 'shop')
    expect((await stat(pathOf('keys'))).mode & 0o777).toBe(0o600)
    const before = await contentOf('keys')
    expect(await linesOfFailed(1, 'key', 'create', 'shop')).toEqual([
      'curtail: Cannot create the key shop: a key has this name; use another one, or revoke it',
    ])
    expect(await linesOfFailed(1, 'key', 'revoke', 'shop', 'x', 'y')).toEqual([
      'curtail: Cannot revoke x, y: no key has this name; nothing is revoked',
    ])
    expect(await contentOf('keys')).toBe(before)
    expect(await readdir(folder)).toEqual(['keys'])
  },
  TEST_MS_MAX,
)

test(
  'concurrent commands that create keys wait for each other',
  async () => {
    const names = ['a', 'b', 'c']
    await writeFile(pathOf('.curtail-list.lock'), '') // as of another command
    const running = Promise.all(names.map((name) => run('key', 'create', name)))
    expect(await Promise.race([running, pause(LOCKED_MS)])).toBeUndefined()
    expect(await readdir(folder)).toEqual(['.curtail-list.lock'])
    await rm(pathOf('.curtail-list.lock'))
    const created = await running
    expect(created.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
    const { value } = parseApiKeys([{ path: 'keys', content: await contentOf('keys') }])
    expect(created.map(({ stdout }) => value.find(stdout.trim(), 0)?.name)).toEqual(names)
    expect(await readdir(folder)).toEqual(['keys'])
  },
  TEST_MS_MAX,
)

test(
  'a key that stdout does not accept is an error that contains how to revoke it',
  async () => {
    const shell = ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath]
    const env = { ...inherited, ...environment() }
    const command = [...shell, ...roleArguments('key', 'create', 'shop')]
    const child = spawn('/bin/sh', command, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const exitCode = await new Promise((resolve) => child.on('close', resolve))
    expect(stderr).toMatch(
      /^curtail: cannot write the output \([^\n]*: the list may contain the key shop, whose value/,
    )
    expect(stderr).toMatch(/ is lost: run `key revoke shop`, then create it\n$/)
    expect(exitCode).toBe(1)
    const revoked = await run('key', 'revoke', 'shop', '--json')
    expect(revoked.stdout).toMatch(/^\{"name":"shop","creator_id":"\d+","state":"revoked"\}\n$/)
  },
  TEST_MS_MAX,
)

/** Runs a command that the kernel kills when it calls rename; resolves to its signal. */
async function runUntilRename(...args: string[]): Promise<string | null> {
  const inject = ['-e', 'trace=rename', '-e', 'inject=rename:signal=KILL', '-o', '/dev/null']
  const command = [...inject, process.execPath, ...roleArguments(...args)]
  const env = { ...inherited, ...environment() }
  const child = spawn(await findStrace(), ['-f', '-q', ...command], { env, stdio: 'ignore' })
  return new Promise((resolve) => {
    child.on('exit', (_, signal) => {
      resolve(signal)
    })
  })
}

test(
  'a command that is killed before it renames the file leaves the list as it was',
  async () => {
    await run('key', 'create', 'shop')
    const before = await contentOf('keys')
    expect(await runUntilRename('key', 'create', 'killed')).toBe('SIGKILL')
    const { length } = (await contentOf('.keys.tmp')).split('\n')
    expect([await contentOf('keys'), length]).toEqual([before, 3])
    expect(await readdir(folder)).toContain('.curtail-list.lock') // the next command takes it over
    const created = await run('key', 'create', 'next')
    const { value, entries } = parseApiKeys([{ path: '', content: await contentOf('keys') }])
    expect([entries, value.find(created.stdout.trim(), 0)?.name]).toEqual([2, 'next'])
    expect(await readdir(folder)).toEqual(['keys'])
  },
  TEST_MS_MAX + INSTALL_MS_MAX,
)

test(
  'block adds, lists and removes entries in normal form',
  async () => {
    await writeFile(pathOf('blocked'), '# phishing\nEvil.example # since May\n')
    const added = await run('block', 'add', 'evil.example', 'http://Sites.example:80/b%61d')
    expect(added).toEqual(printed('1 entry added, 1 already in the list\n'))
    expect(await contentOf('blocked')).toBe(
      '# phishing\nEvil.example # since May\nsites.example/bad\n',
    )
    expect(await run('block', 'list')).toEqual(printed('evil.example\nsites.example/bad\n'))
    expect(await run('block', 'list', '--json')).toEqual(
      printed('{"entry":"evil.example"}\n{"entry":"sites.example/bad"}\n'),
    )
    const matchOf = (url: string, ...more: string[]) =>
      run('block', 'list', '--match', url, ...more)
    expect(await matchOf('https://www.evil.example/x')).toEqual(
      printed('blocked by evil.example\n'),
    )
    expect(await matchOf('https://sites.example/good')).toEqual(printed('not blocked\n'))
    const url = 'http://sites.example/bad/x'
    const { stdout } = await matchOf(url, '--json')
    expect(JSON.parse(stdout)).toEqual({ url, blocked: true, entries: ['sites.example/bad'] })
    expect(await run('block', 'remove', 'EVIL.example', 'other.example')).toEqual(
      printed('1 entry removed, not in the list: other.example\n'),
    )
    expect(await contentOf('blocked')).toBe('# phishing\nsites.example/bad\n')
  },
  TEST_MS_MAX,
)

test(
  'block import adds all valid lines, or reports the faulty ones and changes nothing',
  async () => {
    await run('block', 'add', 'a.example')
    await writeFile(pathOf('import'), '# list\r\nA.example\r\n*.b\r\n\r\nc.example\r\nd e\r\n')
    const faults = [
      `curtail: ${pathOf('import')}:3: the line must not be a pattern: a host includes all its ` +
        'subdomains',
      `curtail: ${pathOf('import')}:6: the line must be one host or one URL: it contains white ` +
        'space',
    ]
    expect(await linesOfFailed(1, 'block', 'import', pathOf('import'))).toEqual([
      ...faults,
      `curtail: Cannot import ${pathOf('import')}: 2 lines are faulty, and the list is not ` +
        'changed; correct them, or use --skip-faulty',
    ])
    expect(await contentOf('blocked')).toBe('a.example\n')
    expect(await run('block', 'import', '--skip-faulty', pathOf('import'))).toEqual({
      exitCode: 0,
      stdout: '1 entry added, 1 already in the list\n2 faulty lines skipped\n',
      stderr: `${faults.join('\n')}\n`,
    })
    expect(await contentOf('blocked')).toBe('a.example\nc.example\n')
    expect(await linesOfFailed(1, 'block', 'import', pathOf('none'))).toEqual([
      expect.stringMatching(/^curtail: Cannot read .*none: ENOENT/),
    ])
  },
  TEST_MS_MAX,
)

test(
  'block does not add more entries than the pods read',
  async () => {
    const hosts = Array.from({ length: ENTRIES_MAX }, (_, at) => `${at.toString(36)}.ab`)
    await mkdir(pathOf('blocked'))
    for (let at = 0; at < hosts.length; at += HOSTS_OF_FILE) {
      const content = `${hosts.slice(at, at + HOSTS_OF_FILE).join('\n')}\n`
      await writeFile(pathOf(`blocked/${at}.txt`), content)
    }
    expect(await linesOfFailed(1, 'block', 'add', 'evil.example')).toEqual([
      'curtail: Cannot add entries: the list would have 2000001: pods read at most 2000000',
    ])
    expect(await run('block', 'add', hosts[7] ?? '')).toEqual(
      printed('0 entries added, 1 already in the list\n'),
    )
    expect(await run('block', 'remove', hosts[7] ?? '')).toEqual(printed('1 entry removed\n'))
    expect(await run('block', 'add', 'evil.example')).toMatchObject({ exitCode: 0 })
    expect(await contentOf('blocked/blocked-targets.txt')).toBe('evil.example\n')
  },
  TEST_MS_MAX,
)

const mistakes: Record<string, [args: string, expected: RegExp]> = {
  'no verb': ['key', /key requires one of the commands create, list, revoke: none is given/],
  'an unknown verb': ['block burn x.example', /add, remove, list, import: it is "burn"/],
  'no name': ['key create', /key create requires NAME: none is given/],
  'two names': ['key create a b', /key create takes only NAME: "b" is extra/],
  'no name to revoke': ['key revoke', /key revoke requires NAME\.\.\.: none is given/],
  'a name for list': ['key list a', /key list takes no arguments: "a" is extra/],
  'an invalid name': ['key create Shop', /1 to 63 of the characters .*: it is "Shop"/],
  'an invalid creator': ['key create a --creator=0', /1 to 9223372036854775807: it is "0"/],
  'a creator that is too large': ['key create a --creator=9223372036854775808', /--creator must/],
  'an invalid date': ['key create a --expires=2099-02-30', /such as 2027-.*: it is "2099-02-30"/],
  'a date in the past': ['key create a --expires=2020-01-01', /in the future/],
  'an option of another verb': ['key list --creator=1', /key list has no option --creator: /],
  'an unknown option': ['block list --all', /block list has no option --all: allowed are/],
  'no entry': ['block add', /block add requires ENTRY\.\.\.: none is given/],
  'an invalid entry': ['block add a.example *.b', /"\*\.b" must not be a pattern: .* allowed are/],
  'an operand of list': ['block list a.example', /block list takes no arguments: "a.exa/],
  'a URL of no link': ['block list --match=a.example', /http\(s\) URL: it is "a.example"/],
  'no file': ['block import', /block import requires FILE\|-: none is given/],
}

describe('a command exits with 2, prints one line and changes nothing for', () => {
  test.each(Object.entries(mistakes))('%s', async (_, [args, expected]) => {
    const lines = await linesOfFailed(2, ...args.split(' '))
    expect(lines).toEqual([expect.stringMatching(expected)])
    expect(await readdir(folder)).toEqual([])
  })

  test.each([
    ['neither list', {}, 'neither of them is set'],
    ['both lists', { API_KEYS: 'x', API_KEYS_SECRET: 'x' }, 'both are set'],
  ])('%s', async (_, env, expected) => {
    expect(await runCurtail(['key', 'list'], env)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'curtail: set one of API_KEYS (a file or folder, the same as that of the service) or ' +
        `API_KEYS_SECRET (Secrets in Kubernetes): ${expected}\n`,
    })
  })
})
