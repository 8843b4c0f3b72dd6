// `curtail export` against a real standalone process: every link in the format of the admin API,
// also for a slow reader and after a stop, and its errors.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
const LINKS = 2500
const CONCURRENCY = 50
/** How long the output is not read: an export of all pages takes a fraction of it. */
const UNREAD_MS = 1000
const token = 'a-token-of-some-length'

let service: Standalone
/** What the admin API returns for each link, by its code. */
const expected = new Map<string, string>()

beforeAll(async () => {
  service = await startStandalone({ env: { ADMIN_TOKEN: token } })
  const client = await openClient(service.port)
  const ordinals = Array.from({ length: LINKS }, (_, i) => i)
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (let i = ordinals.pop(); i !== undefined; i = ordinals.pop()) await storeLink(client, i)
    }),
  )
  client.close()
}, START_MS_MAX)

afterAll(() => service.stop(), START_MS_MAX)

const admin = async (method: string, path: string) => {
  const headers = { Authorization: `Bearer ${token}` }
  const response = await fetch(`${service.adminUrl}/admin${path}`, { method, headers })
  expect(response.ok).toBe(true)
  return response.text()
}

/** Creates a link; every fifth is disabled, every seventh deleted. */
async function storeLink(client: Client, i: number): Promise<void> {
  const code = `${i % 2 === 0 ? 'x' : 'K-'}${i}`
  const body = { long_url: `https://example.com/${'é'.repeat(i % 90)}?${i}`, custom_alias: code }
  const { status } = await client.create(i % 3 === 0 ? { ...body, ttl_days: 9 } : body)
  expect(status).toBe(201)
  if (i % 5 === 0) await admin('POST', `/links/${code}/disable`)
  if (i % 7 === 0) await admin('DELETE', `/links/${code}`)
  expected.set(code, `${await admin('GET', `/links/${code}`)}\n`)
}

/** The lines of the links, in the order of the codes. */
function expectedLines(after = ''): string {
  const codes = [...expected.keys()].filter((code) => code > after).sort()
  return codes.map((code) => expected.get(code)).join('')
}

const environment = () => ({ ADMIN_URL: service.adminUrl, ADMIN_TOKEN: token })

/** Starts an export whose output is not read until `read` is called. */
function startExport(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const child = spawn(process.execPath, roleArguments('export', ...args), {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const exited = once(child, 'close').then(([exitCode]) => exitCode as number | null)
  const read = () => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output.stdout += chunk))
  }
  return { child, output, exited, read }
}

/** Starts a proxy to the admin API that counts the pages; `fault` may return another status. */
async function startProxy(fault: (page: number) => number | undefined = () => undefined) {
  let pages = 0
  const server: Server = createServer((req, res) => {
    const status = fault(pages++)
    if (status !== undefined) {
      res.writeHead(status).end(JSON.stringify({ detail: 'a fault of the test' }))
      return
    }
    const headers = { Authorization: req.headers.authorization ?? '' }
    void fetch(`${service.adminUrl}${req.url ?? ''}`, { headers }).then(async (response) =>
      res.writeHead(response.status).end(await response.text()),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { env: { ...environment(), ADMIN_URL: url }, pages: () => pages, close }
}

test('every link is one line, in exactly the format of the admin API', async () => {
  const run = await runCurtail(['export', '--rate=1000000'], environment())
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  expect(run.stdout).toBe(expectedLines())
  const states = run.stdout.matchAll(/"state":"(\w+)"/g)
  expect(new Set([...states].map(([, state]) => state))).toEqual(
    new Set(['active', 'disabled', 'deleted']),
  )
})

test('--after continues an export, also after a code that has no link', async () => {
  for (const after of ['K-5', 'none', 'x9']) {
    const run = await runCurtail(['export', `--after=${after}`], environment())
    expect([run.exitCode, run.stdout]).toEqual([0, expectedLines(after)])
  }
})

test('--rate bounds the number of links per second', async () => {
  const startedMs = performance.now()
  const run = await runCurtail(['export', '--after=x98', '--rate=5'], environment())
  const lines = expectedLines('x98').split('\n').length - 1
  expect([run.exitCode, run.stdout]).toEqual([0, expectedLines('x98')])
  expect(performance.now() - startedMs).toBeGreaterThan(((lines - 1) / 5) * 1000 * 0.9)
})

test('no further page is requested while the output is not read', async () => {
  const proxy = await startProxy()
  const run = startExport(proxy.env, '--rate=1000000')
  try {
    await waitFor('the first page', () => proxy.pages() > 0)
    await sleep(UNREAD_MS) // an export without back-pressure would request all pages
    // The pipe buffers less than two pages.
    expect(proxy.pages()).toBeLessThanOrEqual(2)
    expect(run.child.exitCode).toBeNull()
    run.read()
    expect(await withinDeadline('the exit', run.exited)).toBe(0)
    expect(run.output.stdout).toBe(expectedLines())
  } finally {
    run.child.kill('SIGKILL')
    proxy.close()
  }
})

test('a 503 is reported and retried, and no link is lost or repeated', async () => {
  const proxy = await startProxy((page) => (page === 2 ? 503 : undefined))
  try {
    const run = await runCurtail(['export', '--rate=1000000'], proxy.env)
    expect(run.exitCode).toBe(0)
    expect(run.stdout).toBe(expectedLines())
    expect(run.stderr).toMatch(
      /^curtail: GET \/admin\/links\?\S+ returned 503: a fault of the test; retrying\n$/,
    )
  } finally {
    proxy.close()
  }
})

test('the error of a failed export contains the option that continues it', async () => {
  const proxy = await startProxy((page) => (page === 2 ? 404 : undefined))
  try {
    const failed = await runCurtail(['export', '--rate=1000000'], proxy.env)
    expect(failed.exitCode).toBe(1)
    expect(failed.stderr).toMatch(/^curtail: export stopped after 1000 links: [^\n]*\n$/)
    const [, option = ''] = /; continue with (--after=\S+)\n$/.exec(failed.stderr) ?? []
    const continued = await runCurtail(['export', option], environment())
    expect([continued.exitCode, continued.stderr]).toEqual([0, ''])
    expect(failed.stdout + continued.stdout).toBe(expectedLines())
  } finally {
    proxy.close()
  }
})

test('SIGTERM stops an export with the option that continues it', async () => {
  const run = startExport(environment(), '--rate=100')
  run.read()
  try {
    await waitFor('the first links', () => run.output.stdout.includes('\n'))
    run.child.kill('SIGTERM')
    expect(await withinDeadline('the exit', run.exited)).toBe(1)
    const [, after = ''] = /; continue with --after=(\S+)\n$/.exec(run.output.stderr) ?? []
    expect(run.output.stdout + expectedLines(after)).toBe(expectedLines())
  } finally {
    run.child.kill('SIGKILL')
  }
})

interface Failure {
  readonly exitCode: number
  readonly env?: Readonly<Record<string, string>>
  readonly line: RegExp
}

const url = 'http://127.0.0.1:1'
const failures: readonly [command: string, failure: Failure][] = [
  [
    'export',
    { exitCode: 1, env: { ADMIN_URL: url }, line: /^cannot reach the admin .* ADMIN_URL$/ },
  ],
  ['export', { exitCode: 1, env: { ADMIN_TOKEN: 'x'.repeat(16) }, line: /401.*ADMIN_TOKEN/ }],
  [
    'export --rate=0',
    { exitCode: 2, line: /^--rate must be an integer from 1 to 1000000: .* "0"$/ },
  ],
  ['export --rate=fast', { exitCode: 2, line: /^--rate must be an integer .* it is "fast"$/ }],
  ['export --rate', { exitCode: 2, line: /^export: --rate requires a value, as in --rate=LINKS/ }],
  [
    'export --after=a/b',
    { exitCode: 2, line: /^--after must be a code, 1 to 10 .* it is "a\/b"$/ },
  ],
  ['export --after', { exitCode: 2, line: /^export: --after requires a value, as in --after=/ }],
  ['export links', { exitCode: 2, line: /^export takes no arguments: "links" is extra; .*$/ }],
  [
    'export --format=csv',
    { exitCode: 2, line: /^export has no option --format: allowed are --after/ },
  ],
]

test.each(failures)('a failure is one line on stderr: %s %j', async (command, failure) => {
  const { exitCode, env, line } = failure
  const run = await runCurtail(command.split(' '), { ...environment(), ...env })
  expect([run.exitCode, run.stdout]).toEqual([exitCode, ''])
  expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
  expect(run.stderr.slice('curtail: '.length, -1)).toMatch(line)
  expect(run.stderr).not.toContain(token)
})
