// `curtail link` for many links against a real standalone process: exactly the selected links are
// changed, also by runs that are stopped and continued, and each change is in the audit log.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const LINKS = 2000
/** A run that a signal stops would take five seconds. */
const SLOWLY = '--rate=200'
const token = 'a-token-of-some-length'
const hosts = ['evil.example', 'a.b.EVIL.example.:81', 'notevil.example', 'evil.example.net']
const operator = 'ann@ops'

interface Row {
  readonly short_code: string
  readonly long_url: string
  readonly creator_id: string | null
}

const rows: readonly Row[] = Array.from({ length: LINKS }, (_, i) => ({
  short_code: `${i % 2 === 0 ? 'x' : 'K-'}${i}`,
  long_url: `https://${hosts[i % 4] ?? ''}/evil.example?${i}`,
  creator_id: i % 5 === 0 ? null : `${i % 5}`,
}))
const codesOf = (some: readonly Row[]) => some.map((row) => row.short_code).sort()
const ofCreator = codesOf(rows.filter((row) => row.creator_id === '3'))
const onHost = codesOf(rows.filter((_, i) => i % 4 < 2))

let folder: string
let service: Standalone
let client: Client

const environment = () => {
  return { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: token, OPERATOR: operator }
}
const operate = (...args: readonly string[]) => runCurtail(args, environment())

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-links-'))
  service = await startStandalone({ env: { ADMIN_TOKEN: token } })
  client = await openClient(service.port)
  const file = join(folder, 'rows.ndjson')
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  const run = await operate('import', file, '--format=ndjson', '--rate=100000')
  expect(run.exitCode).toBe(0)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

const admin = async (request: string): Promise<unknown> => {
  const [method = '', path = ''] = request.split(' ')
  const headers = { Authorization: `Bearer ${token}` }
  const response = await fetch(`${service.adminUrl}/admin${path}`, { method, headers })
  expect(response.status).toBe(200)
  return response.json()
}

/** The disabled links. */
async function disabledCodes(): Promise<string[]> {
  const links: { short_code: string; state: string }[] = []
  for (let next: string | null = '0'; next !== null;) {
    const page = (await admin(`GET /links?limit=1000&after=${next}`)) as {
      links: typeof links
      next: string | null
    }
    links.push(...page.links)
    next = page.next
  }
  expect(links).toHaveLength(LINKS)
  return links.filter(({ state }) => state === 'disabled').map((link) => link.short_code)
}

const linesOf = (output: string) =>
  output
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown)
const printedCodes = (output: string) => codesOf(linesOf(output) as Row[])

/** The lines of the audit log since the last test. */
let auditedBefore = 0
const audited = () => auditedOf(operator).slice(auditedBefore)
/** The lines, once there are so many: a line can be written after the response. */
async function waitForAudited(count: number) {
  await waitFor(`${count} lines of the audit log`, () => audited().length >= count)
  return audited()
}
/** Without the lines of `admin`, or of a killed run, which may be written during a later one. */
const auditedOf = (name: string) =>
  service.log.filter(({ msg, operator: by }) => msg === 'operator action' && by === name)

beforeEach(async () => {
  const disabled = await disabledCodes()
  await Promise.all(disabled.map((code) => admin(`POST /links/${code}/enable`)))
  auditedBefore += audited().length
}, TEST_MS_MAX)

let stoppedRuns = 0

/** Starts a command, sends `signal` when this number of lines is audited, and returns its exit. */
async function runAndStop(
  signal: NodeJS.Signals,
  changes: number,
  args: readonly string[],
): Promise<{ exit: number | NodeJS.Signals; stdout: string; stderr: string }> {
  const name = `run-${++stoppedRuns}`
  const child = spawn(process.execPath, roleArguments(...args), {
    env: { ...inherited, ...environment(), OPERATOR: name },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const exited = once(child, 'close').then(([code, by]) => (code ?? by) as number | NodeJS.Signals)
  try {
    await waitFor('the changes', () => auditedOf(name).length >= changes)
    child.kill(signal)
    const exit = await withinDeadline('the exit', exited)
    return { ...output, exit }
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}

test('list prints exactly the selected links, with a summary', async () => {
  const table = await operate('link', 'list', '--creator=3', '--target-host=EVIL.example.')
  const expected = ofCreator.filter((code) => onHost.includes(code))
  const [headings, ...lines] = table.stdout.trimEnd().split('\n')
  expect(headings).toMatch(/^CODE {8}STATE {5}CREATED {19}EXPIRES {19}CREATOR {5}TARGET$/)
  expect(lines.slice(0, -1).map((line) => line.split(' ')[0])).toEqual(expected)
  expect(new Set(lines.slice(0, -1).map((line) => line.indexOf('https://')))).toEqual(
    new Set([(headings ?? '').indexOf('TARGET')]),
  )
  const summary = `^scanned ${LINKS}, matched ${expected.length}, newest match created at `
  expect(lines.at(-1)).toMatch(new RegExp(`${summary}\\d{4}-.*Z$`))
  const json = await operate('link', 'list', '--creator=3', '--state=active', '--json')
  expect(printedCodes(json.stdout)).toEqual(ofCreator)
  expect(json.stderr).toContain(`scanned ${LINKS}, matched ${ofCreator.length}, newest match`)
  const none = await operate('link', 'list', '--state=disabled', '--json')
  expect([none.stdout, table.exitCode, none.exitCode]).toEqual(['', 0, 0])
  expect(none.stderr).toBe(`scanned ${LINKS}, matched 0\n`)
})

test(
  'the links of a creator are disabled, audited, and enabled by the printed list',
  async () => {
    const code = ofCreator[0] ?? ''
    expect((await client.resolve(code)).status).toBe(302)
    const selection = ['--creator', '3', '--rate=100000']
    const dry = await operate('link', 'disable', ...selection, '--dry-run')
    const counts = `disable ${ofCreator.length}, already disabled 0, expired or deleted 0`
    expect(dry.stdout).toBe(`would ${counts}, not found 0, scanned ${LINKS}\n`)
    expect(audited()).toEqual([])
    const run = await operate('link', 'disable', ...selection, '--json')
    expect(run.exitCode).toBe(0)
    expect(run.stderr).toBe(
      `${counts.replace('disable', 'disabled')}, not found 0, scanned ${LINKS}\n`,
    )
    expect(printedCodes(run.stdout)).toEqual(ofCreator)
    expect((await disabledCodes()).sort()).toEqual(ofCreator)
    expect((await client.resolve(code)).status).toBe(404)
    const lines = await waitForAudited(ofCreator.length)
    expect(lines.map((line) => line['code']).sort()).toEqual(ofCreator)
    const fields = { level: 'info', role: 'standalone', action: 'disable', outcome: 'success' }
    for (const line of lines) {
      expect(line).toMatchObject({ ...fields, operator, address: '127.0.0.1' })
      expect(line['requestId']).toMatch(/^\S+$/)
    }
    const list = join(folder, 'list')
    await writeFile(list, run.stdout)
    const enabled = await operate('link', 'enable', '--from-file', list, '--rate=100000')
    expect(enabled.stdout).toMatch(
      new RegExp(
        `^enabled ${ofCreator.length}, already active 0, .* scanned ${ofCreator.length}\n$`,
      ),
    )
    expect(await disabledCodes()).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'the links on a host and its subdomains are disabled, and no others',
  async () => {
    const args = ['link', 'disable', '--target-host=evil.example', '--rate=100000']
    const run = await operate(...args)
    expect(run.stdout).toMatch(new RegExp(`^disabled ${onHost.length}, already disabled 0, `))
    expect((await disabledCodes()).sort()).toEqual(onHost)
    const second = await operate(...args)
    expect(second.stdout).toMatch(new RegExp(`^disabled 0, already disabled ${onHost.length}, `))
    expect(await waitForAudited(onHost.length)).toHaveLength(onHost.length)
  },
  TEST_MS_MAX,
)

test(
  'a run that SIGINT stops continues with the option that it prints',
  async () => {
    const args = ['link', 'disable', '--target-host=evil.example', '--json']
    const first = await runAndStop('SIGINT', 100, [...args, SLOWLY])
    expect(first.exit).toBe(1)
    const stopped = /^curtail: link disable stopped after (\d+) links: a signal was received; /m
    expect(first.stderr).toMatch(stopped)
    const [, option = ''] = /continue with (--after=\S+)$/m.exec(first.stderr) ?? []
    expect(printedCodes(first.stdout)).toEqual((await disabledCodes()).sort())
    const second = await operate(...args, '--rate=100000', option)
    expect(second.exitCode).toBe(0)
    expect((await disabledCodes()).sort()).toEqual(onHost)
    expect(printedCodes(first.stdout + second.stdout)).toEqual(onHost)
    const [, scanned] = stopped.exec(first.stderr) ?? []
    expect(second.stderr).toContain(`scanned ${LINKS - Number(scanned)}`)
  },
  TEST_MS_MAX,
)

test(
  'a list that SIGINT stops continues after a line; one that is killed can be retried',
  async () => {
    const list = join(folder, 'codes')
    await writeFile(list, `# codes\n${onHost.join('\n')}\nunknown\n`)
    const args = ['link', 'disable', '--from-file', list]
    const killed = await runAndStop('SIGKILL', 50, [...args, SLOWLY])
    expect(killed.exit).toBe('SIGKILL')
    const stopped = await runAndStop('SIGINT', 50, [...args, SLOWLY])
    expect(stopped.exit).toBe(1)
    const [, line, option = ''] =
      /stopped after line (\d+): .*; continue with (--after-line=\d+)$/m.exec(stopped.stderr) ?? []
    const last = await operate(...args, '--rate=100000', option)
    expect(last.exitCode).toBe(0)
    expect(last.stdout).toMatch(/not found 1, scanned \d+\n$/)
    expect(last.stdout).toContain(`scanned ${onHost.length + 2 - Number(line)}`)
    expect((await disabledCodes()).sort()).toEqual(onHost)
  },
  TEST_MS_MAX,
)

test('the codes of the standard input are disabled', async () => {
  const codes = onHost.slice(0, 20)
  const child = spawn(process.execPath, roleArguments('link', 'disable', '--from-file', '-'), {
    env: { ...inherited, ...environment() },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let stdout = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stdin.end(codes.join('\n'))
  expect(await withinDeadline('the exit', once(child, 'close'))).toEqual([0, null])
  expect(stdout).toMatch(/^disabled 20, already disabled 0, .* scanned 20\n$/)
  expect((await disabledCodes()).sort()).toEqual(codes)
})

test('a list with a line that is not a code changes nothing', async () => {
  const list = join(folder, 'invalid')
  await writeFile(list, `${onHost.slice(0, 50).join('\n')}\nhttps://x.example/abc\n`)
  const run = await operate('link', 'disable', '--from-file', list)
  expect(run).toMatchObject({ exitCode: 1, stdout: '' })
  expect(run.stderr).toMatch(/^curtail: line 51 of \S+ must be a code, .*: it is "https:.*"\n$/)
  expect(audited()).toEqual([])
})

test('failed attempts are audited', async () => {
  const code = onHost[0] ?? ''
  const wrong = { ...environment(), ADMIN_TOKEN: 'wrong' }
  expect((await runCurtail(['link', 'delete', code], wrong)).exitCode).toBe(1)
  expect((await operate('link', 'disable', 'unknown')).exitCode).toBe(1)
  expect(await waitForAudited(2)).toMatchObject([
    { action: 'delete', code, outcome: 'unauthorized', operator },
    { action: 'disable', code: 'unknown', outcome: 'not-found', operator },
  ])
})

test.each([
  ['disable --dry-run', /exactly one of --from-file, --creator, --target-host: none is given$/],
  ['enable --target-host=a', /^link enable has no option --target-host: allowed are --from-file/],
  ['list abc', /^link list takes no arguments: "abc" is extra; see curtail link list --help$/],
  ['disable', /^link disable requires a CODE, or, for many links, exactly one of .*: none/],
])('link %s exits with 2 and one line', async (args, expected) => {
  const run = await operate('link', ...args.split(' '))
  expect(run).toMatchObject({ exitCode: 2, stdout: '' })
  const [line = '', ...rest] = run.stderr.trimEnd().split('\n')
  expect(rest).toEqual([])
  expect(line.replace(/^curtail: /, '')).toMatch(expected)
})
