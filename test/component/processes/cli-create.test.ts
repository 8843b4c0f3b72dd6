// `curtail link create` as a client of a real standalone process, and the version and the help.
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { version } from '../../../src/process/version.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const target = 'https://example.com/'

let service: Standalone
let folder: string
let key: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-cli-create-'))
  const keys = join(folder, 'keys')
  const created = await runCurtail(['key', 'create', 'shop', '--creator=7', '--json'], {
    API_KEYS: keys,
  })
  key = (JSON.parse(created.stdout) as { key: string }).key
  service = await startStandalone({ env: { API_KEYS: keys, API_KEY_REQUIRED: 'true' } })
}, START_MS_MAX)

afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

const create = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runCurtail(['link', 'create', ...args], { API_URL: service.baseUrl, API_KEY: key, ...env })

describe('link create', () => {
  test('prints the short link, whose creator is that of the API key', async () => {
    const { stdout, stderr, exitCode } = await create([target, '--alias=mine', '--ttl-days=2'])
    expect([stdout, exitCode]).toEqual([`${service.linkBase}/mine\n`, 0])
    const { headers } = await fetch(`${service.baseUrl}/mine`, { redirect: 'manual' })
    expect(headers.get('location')).toBe(target)
    const shown = await runCurtail(['link', 'show', 'mine', '--json'], {
      ADMIN_URL: service.adminUrl,
    })
    const link = JSON.parse(shown.stdout) as Record<string, unknown>
    expect(link).toMatchObject({ creator_id: '7', expires_at: stringZ })
    expect(stderr).toBe(`expires at ${String(link['expires_at'])}\n`)
  })

  test(
    'warns if the service has not accepted the API key, and creates the link without it',
    async () => {
      const open = await startStandalone()
      try {
        const to = { API_URL: open.baseUrl, ADMIN_URL: open.adminUrl }
        const [withKey, withoutKey] = await Promise.all([
          create([target], to),
          create([target], { ...to, API_KEY: '' }),
        ])
        expect(withKey.stderr).toMatch(
          /^curtail: the link has no creator: .* revoked or expired\n$/,
        )
        expect(withoutKey.stderr).toBe('')
        for (const { stdout, exitCode } of [withKey, withoutKey]) {
          expect([stdout.startsWith(`${open.linkBase}/`), exitCode]).toEqual([true, 0])
        }
      } finally {
        await open.stop()
      }
    },
    TEST_MS_MAX,
  )

  test('does not warn if the API key is accepted', async () => {
    const run = await create([target], { ADMIN_URL: service.adminUrl })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('prints the response with --json, and reads the key from a file', async () => {
    const path = join(folder, 'key')
    await writeFile(path, `${key}\n`)
    const run = await create([target, '--json'], { API_KEY: '', API_KEY_FILE: path })
    const link = JSON.parse(run.stdout) as Record<string, unknown>
    expect(Object.keys(link)).toEqual(['short_url', 'expires_at'])
    expect(link['expires_at']).toBeNull()
  })

  test(
    'reports a problem, and what to do',
    async () => {
      const [taken, invalid, noKey] = await Promise.all([
        create([target, '--alias=taken']).then(() => create([target, '--alias=taken'])),
        create(['example.com']),
        create([target], { API_KEY: '' }),
      ])
      expect(lineOf(taken)).toMatch(/^Cannot create the link: .* 409: .*; use another --alias, or/)
      expect(lineOf(invalid)).toMatch(/ 422: long_url must be an absolute .*; correct the argum/)
      expect(lineOf(noKey)).toMatch(
        / 401: .*; set API_KEY, or the file of API_KEY_FILE, to a valid/,
      )
      expect([taken, invalid, noKey].map(({ exitCode }) => exitCode)).toEqual([1, 1, 1])
    },
    TEST_MS_MAX,
  )

  test.each<[string, RequestListener, RegExp]>([
    [
      'responds with 503',
      (_req, res) => res.writeHead(503).end('{"detail":"no store"}'),
      /^curtail: POST \/v1\/urls returned 503: no store; retrying\n$/,
    ],
    [
      'resets the connection',
      (req) => req.resume().on('end', () => req.socket.resetAndDestroy()),
      /^curtail: cannot reach the API at .*ECONNRESET.*; retrying\n$/,
    ],
  ])(
    'retries if the service %s, with the same Idempotency-Key',
    async (_, fail, expected) => {
      const keys: unknown[] = []
      const listener: RequestListener = (req, res) => {
        keys.push(req.headers['idempotency-key'])
        if (keys.length === 1) fail(req, res)
        else res.writeHead(201).end('{"short_url":"http://a/b","expires_at":null}')
      }
      const server = createServer(listener)
      await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
      const { port } = server.address() as { port: number }
      try {
        const run = await create([target], { API_URL: `http://127.0.0.1:${port}` })
        expect(run).toMatchObject({ exitCode: 0, stdout: 'http://a/b\n' })
        expect(run.stderr).toMatch(expected)
        expect([keys.length, keys[0], typeof keys[0]]).toEqual([2, keys[1], 'string'])
      } finally {
        server.close()
      }
    },
    TEST_MS_MAX,
  )
})

const stringZ: unknown = expect.stringMatching(/Z$/)

function lineOf({ stdout, stderr }: Run): string {
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^curtail: [^\n]+\n$/)
  return stderr.slice('curtail: '.length, -1)
}

test('--version prints the versions of curtail and of Node.js', async () => {
  const run = await runCurtail(['--version'])
  const stdout = `curtail ${version} (Node.js ${process.version})\n`
  expect(run).toEqual({ exitCode: 0, stdout, stderr: '' })
})

test.each([
  [{}, '\u001b[31mcurtail:\u001b[39m unknown role'],
  [{ NO_COLOR: '1' }, 'curtail: unknown role'],
])('a terminal receives colours, unless NO_COLOR is set: %j', (env, expected) => {
  const command = [process.execPath, ...roleArguments('lnik')].join(' ')
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
    env: { ...inherited, TERM: 'xterm', ...env },
    encoding: 'utf8',
  })
  expect(stdout.startsWith(expected)).toBe(true)
})

describe('the help', () => {
  test.each([
    [['--help'], /^Usage: curtail ROLE .*\nServices:\n {2}standalone.*\nCommands:\n {2}link /s],
    [['help'], /^Usage: curtail ROLE /],
    [['help', 'help'], /^Usage: curtail help /],
    [['completion', '-h'], /^Usage: curtail completion bash\n {7}curtail completion zsh\n/],
    [
      ['standalone', '-h'],
      /^Usage: curtail standalone \[--greet\]\n.*default: 8080.* ADMIN_PORT /s,
    ],
    [['link', '--help'], /^Usage: curtail link create LONG_URL .*link show -- -ab.* ADMIN_URL /s],
    [['help', 'link', 'show'], /^Usage: curtail link show CODE \[--json\]\n\nShows one link\.\n/],
    [['link', 'show', '-h'], /^Usage: curtail link show CODE .*Details: curtail link --help\n$/s],
    [['pool', '--help'], /^Usage: curtail pool status .*Usage: curtail pool raise POOL=BLOCK/s],
    [['pool', 'raise', '--help'], /^Usage: curtail pool raise .* CASSANDRA_CONTACT_POINTS /s],
  ])('%j', async (args, expected) => {
    const run = await runCurtail(args, { PORT: 'bad' })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    expect(run.stdout).toMatch(expected)
  })
})
