// `curtail ratelimit-check`, run as it is: what it prints and with which code it ends.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Run, runCurtail } from './run-curtail.ts'

const START_MS_MAX = 30_000
const TEST_MS_MAX = 30_000
const shipped = 'src/limits/standalone.yaml'

let folder: string
const at = (name: string) => join(folder, name)
const check = (...args: readonly string[]) => runCurtail(['ratelimit-check', ...args])

/** The one line of an error, after its `curtail: `. */
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
    'lists the rules of good files and explains descriptors',
    async () => {
      const descriptor = 'route=create,client=192.0.2.1'
      const run = await check(shipped, '--descriptor', descriptor, '--descriptor=route=other')
      expect(run).toMatchObject({ exitCode: 0, stderr: '' })
      const path = 'curtail.route_create.client'
      const lines = run.stdout.split('\n')
      expect(lines[0]).toBe('no faults: 1 file, 3 rules, 1 domain (curtail)')
      expect(lines[2]?.split(/ {2,}/)).toEqual([
        path,
        'token_bucket',
        '50',
        'second',
        '500',
        'creates-per-client',
      ])
      expect(run.stdout.match(/^remark: .*/gm)).toEqual([
        'remark: on Redis Cluster all-or-nothing holds only for keys with one hash tag; ' +
          'rules it is asked of, by deny_consumes: 3 of 3',
      ])
      expect(run.stdout).toContain(
        `\ncurtail: ${descriptor}\n` +
          '  route=create: exact value, at curtail.route_create\n' +
          `  client=192.0.2.1: any value of the key, a counter for each value, at ${path}\n` +
          `  hits ${path}: token_bucket, 50 per second, burst 500 (creates-per-client)\n`,
      )
      expect(run.stdout).toMatch(/ {2}no rule: route leads nowhere; no other way is tried\n$/)
    },
    TEST_MS_MAX,
  )

  test(
    'lists every fault with its file and line, and ends with 1',
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
    'a folder means its *.yaml, which may be parts of one domain',
    async () => {
      const apart = await check(at('two'))
      expect(apart).toMatchObject({ exitCode: 1, stderr: '' })
      expect(apart.stdout).toBe(`${at('two/b.yaml')}:1: duplicate domain 'd' in config file\n`)
      const merged = await check(at('two'), '--merge-domains', '--domain=d', '--descriptor=b=1')
      expect(merged).toMatchObject({ exitCode: 0, stderr: '' })
      expect(merged.stdout).toMatch(/^no faults: 2 files, 2 rules, 1 domain \(d\)\n/)
      expect(merged.stdout).toContain('  hits d.b: fixed_window, 5 per day\n')
    },
    TEST_MS_MAX,
  )

  test(
    'a domain that is named must have rules',
    async () => {
      const place = at('good.yaml')
      expect(await check(place, '--domain=d')).toMatchObject({ exitCode: 0, stderr: '' })
      const run = await check(place, '--domain=edge')
      const why = "no file has rules of the domain 'edge', which is required: the rules are of 'd'"
      expect(run).toEqual({ exitCode: 1, stderr: '', stdout: `${place}:1: ${why}\n` })
    },
    TEST_MS_MAX,
  )

  test.each([
    ['missing.yaml', 'cannot be read: there is no such file'],
    ['none', 'is a folder without any *.yaml file'],
    ['latin.yaml', 'cannot be read: it is not UTF-8'],
  ])(
    '%s is no rules file, and the sentence says why',
    async (name, why) => {
      const run = await check(at(name))
      expect(run.exitCode).toBe(1)
      expect(errorLine(run)).toBe(`${at(name)} ${why}`)
    },
    TEST_MS_MAX,
  )

  test.each([
    [[], 'ratelimit-check must be followed by one or more FILES or folders'],
    [
      [shipped, '--descriptor', 'create'],
      '--descriptor must be key=value,key=value ...: it is "create"',
    ],
    [
      [shipped, '--quick'],
      "ratelimit-check takes --descriptor, --domain and --merge-domains: Unknown option '--quick'",
    ],
    [
      [shipped, 'GOOD', '--descriptor', 'a=b'],
      '--domain must name the domain of the descriptors: curtail, d',
    ],
  ])(
    'called wrongly it ends with 2: %j',
    async (args, sentence) => {
      const run = await check(...args.map((arg) => (arg === 'GOOD' ? at('good.yaml') : arg)))
      expect(run.exitCode).toBe(2)
      expect(errorLine(run)).toBe(sentence)
    },
    TEST_MS_MAX,
  )
})
