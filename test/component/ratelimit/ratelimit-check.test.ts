// Runs `curtail ratelimit-check` as a process: its output and its exit code.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { FILE_BYTES_MAX } from '../../../src/limits/parse-yaml.ts'
import { roleArguments } from '../../kit/processes/role-process.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const shipped = 'src/limits/standalone.yaml'

let folder: string
const at = (name: string) => join(folder, name)
const check = (...args: readonly string[]) => runCurtail(['ratelimit-check', ...args])

/** Runs a check with this standard input. */
function checkStdin(input: Buffer, ...args: readonly string[]) {
  const all = roleArguments('ratelimit-check', ...args)
  const checking = promisify(execFile)(process.execPath, all, { timeout: TEST_MS_MAX })
  checking.child.stdin?.end(input)
  return checking
}

/** The single line of an error, without its prefix `curtail: `. */
function errorLine(run: Run): string {
  expect(run.stdout).toBe('')
  expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
  return run.stderr.slice('curtail: '.length, -1)
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-check-'))
  await writeFile(
    at('bad.yaml'),
    'domain: d\ndescriptors:\n- key: a\n  ratelimit: {}\n- value: v\n',
  )
  await writeFile(at('good.yaml'), 'domain: d\ndescriptors:\n- key: a\n')
  await mkdir(at('two'))
  await mkdir(at('none'))
  const limit = 'rate_limit: {unit: day, requests_per_unit: 5}'
  await writeFile(at('two/a.yaml'), `domain: d\ndescriptors:\n- {key: a, ${limit}}\n`)
  await writeFile(at('two/b.yaml'), `domain: d\ndescriptors:\n- {key: b, ${limit}}\n`)
  await writeFile(at('two/notes.txt'), 'not a rule')
  await writeFile(at('latin.yaml'), Buffer.from([0x64, 0xe9]))
}, START_MS_MAX)

afterAll(async () => {
  await rm(folder, { recursive: true })
}, START_MS_MAX)

describe('ratelimit-check', () => {
  test(
    'adds the allowances of the Envoys to the limits of descriptors',
    async () => {
      const descriptor = ['--descriptor', 'route=create,client=192.0.2.1']
      const run = await check(shipped, ...descriptor, '--allowance', '6,5,13')
      expect(run).toMatchObject({ exitCode: 0, stderr: '' })
      expect(run.stdout).toContain(
        'client with 6 allowance buckets (burst 5, 13 per minute each): 51.3 per second, ' +
          'burst 530\n',
      )
      for (const invalid of ['6,5', '0,5,13', '6,5,1000001', 'a']) {
        const failed = await check(shipped, '--allowance', invalid)
        expect(errorLine(failed)).toContain('--allowance must be BUCKETS,BURST,PER_MINUTE')
      }
    },
    TEST_MS_MAX,
  )

  test(
    'lists the rules of valid files and explains descriptors',
    async () => {
      const descriptor = 'route=create,client=192.0.2.1'
      const run = await check(shipped, '--descriptor', descriptor, '--descriptor=route=other')
      expect(run).toMatchObject({ exitCode: 0, stderr: '' })
      const path = 'curtail.route_create.client'
      const lines = run.stdout.split('\n')
      expect(lines[0]).toBe('no faults: 1 file, 5 rules, 1 domain (curtail)')
      expect(lines[2]?.split(/ {2,}/)).toEqual([
        path,
        'token_bucket',
        '50',
        'second',
        '500',
        'creates-per-client',
      ])
      expect(run.stdout).not.toContain('warning: ')
      expect(run.stdout).toContain(
        `\ncurtail: ${descriptor}\n` +
          '  route=create: exact value, at curtail.route_create\n' +
          `  client=192.0.2.1: any value of the key, a counter for each value, at ${path}\n` +
          `  hits ${path}: token_bucket, 50 per second, burst 500 (creates-per-client)\n`,
      )
      expect(run.stdout).toMatch(
        / {2}no rule: no descriptor matches route; matching does not backtrack\n$/,
      )
    },
    TEST_MS_MAX,
  )

  test(
    'lists every fault with its file and line, and exits with 1',
    async () => {
      const run = await check(at('bad.yaml'), at('good.yaml'), shipped)
      expect(run).toEqual({
        exitCode: 1,
        stderr: '',
        stdout: [
          `${at('bad.yaml')}:4: config error, unknown key 'ratelimit'\n`,
          `${at('bad.yaml')}:5: descriptor has empty key\n`,
          `${at('good.yaml')}:1: duplicate domain 'd' in config file\n`,
        ].join(''),
      })
    },
    TEST_MS_MAX,
  )

  test(
    'reads the *.yaml files of a folder, which may share one domain',
    async () => {
      const separate = await check(at('two'))
      expect(separate).toMatchObject({ exitCode: 1, stderr: '' })
      expect(separate.stdout).toBe(`${at('two/b.yaml')}:1: duplicate domain 'd' in config file\n`)
      const merged = await check(at('two'), '--merge-domains', '--domain=d', '--descriptor=b=1')
      expect(merged).toMatchObject({ exitCode: 0, stderr: '' })
      expect(merged.stdout).toMatch(/^no faults: 2 files, 2 rules, 1 domain \(d\)\n/)
      expect(merged.stdout).toContain('  hits d.b: fixed_window, 5 per day\n')
    },
    TEST_MS_MAX,
  )

  test(
    'applies DEFAULT_ALGORITHM, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT and REDIS_TYPE',
    async () => {
      const [file, args] = [at('two/a.yaml'), ['--descriptor=a=1']]
      const run = await runCurtail(['ratelimit-check', file, ...args], {
        DEFAULT_ALGORITHM: 'sliding_window_log',
      })
      expect(run).toMatchObject({ exitCode: 0, stderr: '' })
      expect(run.stdout).toContain('  hits d.a: sliding_window_log, 5 per day\n')
      const stops = { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true', REDIS_TYPE: 'cluster' }
      const stopped = await runCurtail(['ratelimit-check', file], stops)
      expect(stopped.stdout.match(/^warning: .*/gm)).toEqual([
        'warning: on Redis Cluster only keys with equal hash tags are counted atomically; ' +
          'rules that require it (deny_consumes: false): 1 of 1',
      ])
      const invalid = await runCurtail(['ratelimit-check', file], { DEFAULT_ALGORITHM: 'none' })
      expect(errorLine(invalid)).toContain('DEFAULT_ALGORITHM must be one of fixed_window, ')
    },
    TEST_MS_MAX,
  )

  test(
    'requires rules of the domain that --domain names',
    async () => {
      const file = at('two/a.yaml')
      expect(await check(file, '--domain=d')).toMatchObject({ exitCode: 0, stderr: '' })
      const run = await check(file, '--domain=edge')
      const message =
        "no file has rules for the required domain 'edge': the domains with rules are 'd'"
      expect(run).toEqual({ exitCode: 1, stderr: '', stdout: `${file}:1: ${message}\n` })
    },
    TEST_MS_MAX,
  )

  test(
    'reads - from the standard input',
    async () => {
      await expect(checkStdin(await readFile(at('bad.yaml')), '-', shipped)).rejects.toMatchObject({
        code: 1,
        stdout:
          "stdin:4: config error, unknown key 'ratelimit'\nstdin:5: descriptor has empty key\n",
      })
    },
    TEST_MS_MAX,
  )

  test.each([
    [
      'more than 1 MiB',
      Buffer.alloc(FILE_BYTES_MAX + 1, '#'),
      `the standard input may have at most ${FILE_BYTES_MAX} bytes: it has more`,
    ],
    ['invalid UTF-8', Buffer.from([0x64, 0xe9]), 'stdin cannot be read: it is not UTF-8'],
  ])(
    'rejects %s on the standard input',
    async (_, input, message) => {
      await expect(checkStdin(input, '-')).rejects.toMatchObject({
        ...{ code: 1, stdout: '', stderr: `curtail: ${message}\n` },
      })
    },
    TEST_MS_MAX,
  )

  test.each([
    ['missing.yaml', 'cannot be read: no such file'],
    ['none', 'is a folder without any *.yaml file'],
    ['latin.yaml', 'cannot be read: it is not UTF-8'],
  ])(
    'rejects %s, which is not a rules file, with the cause',
    async (name, cause) => {
      const run = await check(at(name))
      expect(run.exitCode).toBe(1)
      expect(errorLine(run)).toBe(`${at(name)} ${cause}`)
    },
    TEST_MS_MAX,
  )

  test.each([
    [[], 'ratelimit-check requires FILE...: none is given; see curtail ratelimit-check --help'],
    [['-', shipped, '-'], '- may be given only once: it is the standard input'],
    [
      [shipped, '--descriptor', 'create'],
      '--descriptor must be key=value,key=value ...: it is "create"',
    ],
    [
      [shipped, '--quick'],
      'ratelimit-check has no option --quick: allowed are --descriptor, --domain, ' +
        '--merge-domains, --allowance, --json; see curtail ratelimit-check --help',
    ],
    [
      [shipped, 'GOOD', '--descriptor', 'a=b'],
      '--domain must name the domain of the descriptors: curtail, d',
    ],
  ])(
    'exits with 2 on invalid arguments: %j',
    async (args, message) => {
      const run = await check(...args.map((arg) => (arg === 'GOOD' ? at('good.yaml') : arg)))
      expect(run.exitCode).toBe(2)
      expect(errorLine(run)).toBe(message)
    },
    TEST_MS_MAX,
  )
})
