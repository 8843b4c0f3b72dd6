// The command line: the operator's commands against a real standalone process, and the error and
// exit code of each command that fails.
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, type Server } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const target = 'https://example.com/'
const token = 'a-token-of-some-length'

let service: Standalone
let client: Client
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-cli-'))
  service = await startStandalone({ env: { ADMIN_TOKEN: token } })
  client = await openClient(service.port)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

const operate = (...args: readonly string[]) =>
  runCurtail(args, { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: token })

/** The error without its `curtail: ` prefix; verifies that it is the only output. */
function errorLine(run: Run): string {
  expect(run.stdout).toBe('')
  expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
  return run.stderr.slice('curtail: '.length, -1)
}

const rowsOf = (run: Run) => run.stdout.split('\n').map((line) => line.split(/ {2,}/))

describe('link', () => {
  test(
    'show, disable, enable and delete print a table or JSON',
    async () => {
      await client.create({ long_url: target, custom_alias: 'link', ttl_days: 1 })
      const shown = await operate('link', 'show', 'link')
      expect(shown).toMatchObject({ exitCode: 0, stderr: '' })
      const [headings, row] = rowsOf(shown)
      expect(headings).toEqual(['CODE', 'STATE', 'CREATED', 'EXPIRES', 'CREATOR', 'TARGET'])
      expect(row).toMatchObject(['link', 'active', /Z$/, /Z$/, '-', target].map(matching))

      const disabled = await operate('link', 'disable', 'link', '--json')
      expect(disabled.exitCode).toBe(0)
      expect(JSON.parse(disabled.stdout)).toMatchObject({ short_code: 'link', state: 'disabled' })
      expect((await client.resolve('link')).status).toBe(404)

      const enabled = await operate('link', 'enable', 'link')
      expect(rowsOf(enabled)[1]?.slice(0, 2)).toEqual(['link', 'active'])
      expect((await client.resolve('link')).status).toBe(302)

      const deleted = await operate('link', 'delete', 'link')
      expect(deleted).toEqual({ exitCode: 0, stdout: 'link deleted\n', stderr: '' })
      const retried = await operate('link', 'delete', '--json', 'link')
      expect(JSON.parse(retried.stdout)).toEqual({ short_code: 'link', state: 'deleted' })
      const erased = await operate('link', 'show', 'link')
      expect(rowsOf(erased)[1]?.slice(0, 2)).toEqual(['link', 'deleted'])
      expect(rowsOf(erased)[1]?.slice(4)).toEqual(['-', '-'])
    },
    TEST_MS_MAX,
  )

  test('accepts a code that starts with a hyphen after --', async () => {
    await client.create({ long_url: target, custom_alias: '--json' })
    const [, row] = rowsOf(await operate('link', 'show', '--', '--json'))
    expect(row).toMatchObject(['--json', 'active', /Z$/, 'never', '-', target].map(matching))
  })

  test('accepts the codes --help and -h after --', async () => {
    for (const code of ['--help', '-h']) {
      await client.create({ long_url: target, custom_alias: code })
      const deleted = await operate('link', 'delete', '--', code)
      expect(deleted).toEqual({ exitCode: 0, stdout: `${code} deleted\n`, stderr: '' })
      expect((await client.resolve(code)).status).toBe(404)
    }
  })
})

const matching = (pattern: string | RegExp): unknown =>
  typeof pattern === 'string' ? pattern : expect.stringMatching(pattern)

test('pool status prints the pool as a table or JSON', async () => {
  const [table, json] = await Promise.all([
    operate('pool', 'status'),
    operate('pool', 'status', '--json'),
  ])
  const [headings, row] = rowsOf(table)
  expect(headings).toEqual(['POOL', 'LEVEL', 'LOW WATER', 'TARGET', 'CODES/S', 'EMPTY IN'])
  expect(row?.[0]).toBe('default')
  expect(JSON.parse(json.stdout)).toMatchObject([{ pool: 'default', target: 1000 }])
  expect([table.exitCode, json.exitCode]).toEqual([0, 0])
})

const unreachable = { ADMIN_URL: 'http://127.0.0.1:1' }
const failures: Record<string, [args: string, env: Record<string, string>, expected: RegExp]> = {
  'the service is unavailable': ['link show abc', unreachable, /127\.0\.0\.1:1.*ADMIN_URL/],
  'the service is unavailable, pool': ['pool status', unreachable, /127\.0\.0\.1:1.*ADMIN_URL/],
  'the link does not exist': ['link show unknown', {}, /404.*No record/],
  'the link to disable does not exist': ['link disable unknown', {}, /404/],
  'the link to delete does not exist': ['link delete unknown --json', {}, /404/],
  'it is not a limiter': ['limit reset d k=v', {}, /404.*; ADMIN_URL must be the admin URL of /],
  'the token is wrong': ['pool status', { ADMIN_TOKEN: 'x'.repeat(16) }, /401.*ADMIN_TOKEN/],
}

describe('a command exits with 1 and prints one line if', () => {
  test.each(Object.entries(failures))('%s', async (_, [args, env, expected]) => {
    const defaults = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: token }
    const run = await runCurtail(args.split(' '), { ...defaults, ...env })
    expect(errorLine(run)).toMatch(expected)
    expect(run.exitCode).toBe(1)
    expect(run.stderr).not.toContain(token)
  })
})

const json = (status: number, body: unknown): RequestListener => {
  const type = { 'Content-Type': 'application/json' }
  return (_req, res) => res.writeHead(status, type).end(JSON.stringify(body))
}
const otherServers: Record<string, [listener: RequestListener, expected: RegExp]> = {
  'other JSON': [json(200, { hello: 'world' }), / returned 200, but the response is not/],
  'JSON null': [json(200, null), / returned 200, but the response is not/],
  'a page': [
    (_req, res) => res.end('<!doctype html>\n<p>Hello'),
    / returned 200, but the response is not/,
  ],
  'no body': [(_req, res) => res.writeHead(200).end(), / returned 200, but the response is not/],
  '204': [(_req, res) => res.writeHead(204).end(), / returned 204, but the response is not/],
  'a page of 502': [
    (_req, res) => res.writeHead(502).end('Bad'),
    / returned 502, but the response is not/,
  ],
  'JSON of 404': [json(404, { message: 'none' }), / returned 404, but the response is not/],
}

describe('a command reports a server that is not Curtail in one line if it returns', () => {
  test.each(Object.entries(otherServers))('%s', async (what, [listener, expected]) => {
    const server = createHttpServer(listener)
    await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
    const env = { ADMIN_URL: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
    try {
      const commands = [
        'link show abc',
        'pool status',
        ...(what === '204' ? [] : ['link delete abc']),
      ]
      for (const command of commands) {
        const run = await runCurtail(command.split(' '), env)
        expect(errorLine(run)).toMatch(expected)
        expect(run.stderr).toContain(`ADMIN_URL, ${env.ADMIN_URL}`)
        expect(run.exitCode).toBe(1)
      }
    } finally {
      server.close()
    }
  })
})

const mistakes: Record<string, [args: readonly string[], expected: RegExp]> = {
  'no role': [[], /^no ROLE is given, such as standalone or link; curtail --help lists the roles$/],
  'an unknown role': [['nonsense'], /^unknown role "nonsense"; curtail --help lists the roles$/],
  'a role with a typing error': [['lnik', 'show'], /"lnik"; .*; did you mean link\?$/],
  'a role of an object': [['toString'], /unknown role "toString"/],
  'help of an unknown role': [['help', 'lnik'], /unknown role "lnik"/],
  'a verb of an object': [['link', 'constructor', 'abc'], /create, list, show, disable/],
  'no command': [['link'], /^link requires one of the commands create, .*: none is given; see /],
  'no code': [['link', 'show'], /^link show requires CODE: none is given; see curtail link show /],
  'two codes': [['link', 'show', 'a', 'b'], /^link show takes only CODE: "b" is extra; see /],
  'a character of no code': [['link', 'show', 'a b/c'], /only letters, .*: "a b\/c" contains " "$/],
  'a short URL': [['link', 'show', 'http://s/a'], /contains ":"; give only what follows the last /],
  'a code that is too long': [['link', 'show', '12345678901'], /1 to 10 characters: ".*" has 11$/],
  'an option with a typing error': [['pool', 'status', '--jsno'], /did you mean --json\?$/],
  'a code that looks like an option': [
    ['link', 'show', '-ab'],
    /option -ab: .* requires -- before/,
  ],
  'an option before the command': [['pool', '--json', 'status'], /"--json"; options follow the/],
  'a module with one command': [['pool', 'stats'], /status, raise: it is "stats"; did you mean st/],
  'a setting of days': [['link', 'create', 'x', '--ttl-days=0'], /--ttl-days must be an integer/],
  'standalone and more': [['standalone', '--gret'], /no option --gret: .*; did you mean --greet/],
  'a service and more': [
    ['create', 'x'],
    /^create takes no arguments: "x" is extra; see curtail cr/,
  ],
  'another shell': [['completion', 'fish'], /one of the commands bash, zsh: it is "fish"/],
}

/** Pairs of items: a process takes 0.4 s to start, and two of them run at the same time. */
function pairsOf<T>(items: readonly T[]): (readonly [T, readonly T[]])[] {
  return items.flatMap((item, at) => (at % 2 === 0 ? [[item, items.slice(at + 1, at + 2)]] : []))
}

describe('a command exits with 2 and prints one line for', () => {
  test(
    'each mistake in the arguments, before the settings are read',
    async () => {
      for (const [left, right] of pairsOf(Object.entries(mistakes))) {
        const runs = [left, ...right].map(async ([what, [args, expected]]) => {
          const run = await runCurtail(args, { DATA_DIR: join(folder, 'unused') })
          expect([what, errorLine(run)]).toEqual([what, expect.stringMatching(expected)])
          expect([what, run.exitCode]).toEqual([what, 2])
        })
        await Promise.all(runs)
      }
    },
    TEST_MS_MAX,
  )

  test('one port for two listeners', async () => {
    const run = await runCurtail(['standalone'], { PORT: '9090', DATA_DIR: join(folder, 'ports') })
    expect(errorLine(run)).toContain('PORT and ADMIN_PORT must be different: both are 9090')
    expect(run.exitCode).toBe(2)
  })

  test('each configuration error, without secrets', async () => {
    const faulty = {
      ...{ PORT: '80a', ADMIN_PORT: '65536', BASE_URL: 'ftp://x', OWN_HOSTS: 'a/b' },
      ...{ ADMIN_TOKEN: 'not one word', REDIRECT_STATUS: '303', LOG_LEVEL: 'loud' },
    }
    const run = await runCurtail(['standalone'], { ...faulty, DATA_DIR: folder })
    expect([run.exitCode, run.stdout]).toEqual([2, ''])
    const lines = run.stderr.trimEnd().split('\n')
    expect(lines).toHaveLength(Object.keys(faulty).length)
    for (const [name, value] of Object.entries(faulty)) {
      const line = lines.find((one) => one.startsWith(`curtail: ${name} must be `))
      expect([name, line]).toEqual([name, expect.any(String)])
      if (name !== 'ADMIN_TOKEN') expect(line).toContain(value)
    }
    expect(run.stderr).not.toContain('not one word')
  })

  test.each([
    ['both', { ADMIN_TOKEN: token, ADMIN_TOKEN_FILE: '/dev/null' }, /ADMIN_TOKEN_FILE.*both/],
    ['a missing file', { ADMIN_TOKEN_FILE: '/none' }, /ADMIN_TOKEN_FILE.*\/none/],
    ['another scheme', { ADMIN_URL: 'ftp://x' }, /ADMIN_URL must be.*ftp/],
  ])('a token or URL set to %s', async (_, env, expected) => {
    const run = await runCurtail(['pool', 'status'], env)
    expect(errorLine(run)).toMatch(expected)
    expect(run.exitCode).toBe(2)
  })
})

test('a command reads its token from ADMIN_TOKEN_FILE', async () => {
  const path = join(folder, 'token')
  await writeFile(path, `${token}\n`)
  const env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN_FILE: path }
  expect((await runCurtail(['pool', 'status'], env)).exitCode).toBe(0)
})

describe('standalone does not start', () => {
  let server: Server
  let port: number

  beforeAll(async () => {
    server = createServer()
    await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
    port = (server.address() as { port: number }).port
  })

  afterAll(() => {
    server.close()
  })

  test.each(['PORT', 'ADMIN_PORT'])('if %s is in use', async (name) => {
    const ports = { PORT: '0', ADMIN_PORT: '0', [name]: String(port) }
    const run = await runCurtail(['standalone'], { ...ports, DATA_DIR: join(folder, name) })
    expect(errorLine(run)).toContain(`port ${port} is in use`)
    expect(run.stderr).toContain(`set ${name} to another`)
    expect(run.exitCode).toBe(1)
  })

  test('if another process uses its DATA_DIR', async () => {
    const env = { PORT: '0', ADMIN_PORT: '0', DATA_DIR: service.dataDir }
    const run = await runCurtail(['standalone'], env)
    expect(errorLine(run)).toBe(`DATA_DIR ${service.dataDir} is in use by another process`)
    expect(run.exitCode).toBe(1)
    expect((await client.create({ long_url: target })).status).toBe(201)
  })

  test('if its DATA_DIR is a file', async () => {
    const path = join(folder, 'file')
    await writeFile(path, '')
    const run = await runCurtail(['standalone'], { PORT: '0', ADMIN_PORT: '0', DATA_DIR: path })
    expect(errorLine(run)).toContain(`DATA_DIR ${path} cannot be used`)
    expect(run.exitCode).toBe(2)
  })
})
