// Reports of abuse, from the form to the operator's commands, in the real standalone process with
// its shipped rate limits: also with a database that cannot be written.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isReportId, newReportId } from '../../../src/links/report.ts'
import { type Client, openClient } from '../../kit/http/client.ts'
import { openHttpClient } from '../../kit/http/http-client.ts'
import { headerOf, type RawResponse } from '../../kit/http/raw-http.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const TEST_MS_MAX = 180_000
/** The burst of the shipped rule. */
const BURST = 50
const target = 'https://example.com/target'
const hostile = '\u202e<script>alert(1)</script>\nsecond "line"'

let service: Standalone
let client: Client
let addresses = 0

beforeAll(async () => {
  const env = {
    BASE_URL: 'https://cur.tl',
    SECURITY_CONTACT: 'mailto:security@cur.tl',
    RATE_LIMITS: '',
  }
  service = await startStandalone({ env })
  client = await openClient(service.port)
  for (const custom_alias of ['bad', 'other']) {
    expect((await client.create({ long_url: target, custom_alias })).status).toBe(201)
  }
}, TEST_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, TEST_MS_MAX)

/** Submits the form `count` times from an address that no other call uses. */
async function submit(fields: Record<string, string>, count = 1): Promise<RawResponse[]> {
  const http = openHttpClient(service.port, { from: `127.0.2.${++addresses}`, msMax: 10_000 })
  const responses: RawResponse[] = []
  const request = {
    method: 'POST',
    path: '/abuse',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ reason: 'phishing', ...fields }).toString(),
  }
  while (responses.length < count) responses.push(await http.send(request))
  http.close()
  return responses
}

/** Submits the form, which must be stored; returns the number of the report. */
async function report(fields: Record<string, string>): Promise<string> {
  const [response] = await submit(fields)
  expect(response?.status).toBe(201)
  const [, id = ''] = /id="report">([^<]*)</.exec(String(response?.body)) ?? []
  expect(isReportId(id)).toBe(true)
  for (const atMs = Date.now(); Date.now() === atMs;); // ids of one millisecond are in any order
  return id
}

const operate = (...args: readonly string[]) => runCurtail(args, { ADMIN_URL: service.adminUrl })
const linesOf = async (...args: readonly string[]) => {
  const run = await operate(...args)
  expect([run.exitCode, run.stderr]).toEqual([0, ''])
  return run.stdout.split('\n').slice(0, -1)
}

test(
  'a report is listed and shown with the state that its link has now',
  async () => {
    const id = await report({
      link: 'https://cur.tl/bad',
      details: hostile,
      contact: 'a@b.example',
    })
    const [headings, row] = await linesOf('report', 'list', '--code=bad')
    expect(headings?.split(/ {2,}/)).toEqual(['TIME', 'ID', 'CODE', 'REASON', 'STATE', 'TARGET'])
    const shownRow = ['bad', 'phishing', 'active', target]
    expect(row?.split(/ {2,}/).slice(1)).toEqual([id, ...shownRow])
    await operate('link', 'disable', 'bad')
    const shown = await linesOf('report', 'show', id)
    expect(shown.filter((line) => !line.startsWith('Time:'))).toEqual([
      `Report:  ${id}`,
      'Code:    bad',
      'Reason:  phishing',
      'State:   disabled',
      `Target:  ${target}`,
      'Contact: a@b.example',
      'Details:',
      '  \\u202e<script>alert(1)</script>',
      '  second "line"',
    ])
    const json = await linesOf('report', 'show', id, '--json')
    expect(json.join('')).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(json.join(''))).toMatchObject({
      id,
      short_code: 'bad',
      details: hostile,
      link: { state: 'disabled', long_url: target },
    })
  },
  TEST_MS_MAX,
)

test(
  'list filters, bounds, and prints the codes that link disable reads',
  async () => {
    for (const link of ['other', 'unknown', 'other']) await report({ link, reason: 'malware' })
    const filter = ['report', 'list', '--reason=malware', '--since=1h']
    expect(await linesOf(...filter, '--codes')).toEqual(['other', 'unknown'])
    const listed = (await linesOf(...filter, '--json')).map((line) => JSON.parse(line) as unknown)
    expect(listed).toMatchObject([
      { short_code: 'other', link: { state: 'active' } },
      { short_code: 'unknown', link: null },
      { short_code: 'other' },
    ])
    const bounded = await operate(...filter, '--limit=1', '--codes')
    expect(bounded).toMatchObject({ exitCode: 0, stdout: 'other\n' })
    expect(bounded.stderr).toBe('curtail: more reports match than --limit=1: it lists the newest\n')
    expect(await linesOf('report', 'list', '--reason=spam', '--codes')).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'list reads every page',
  async () => {
    const db = new DatabaseSync(join(service.dataDir, 'curtail.db'), { timeout: 5000 })
    const insert = db.prepare('INSERT INTO reports VALUES (?, ?, ?, NULL, NULL)')
    const dayAgoMs = Date.now() - 86_400_000
    for (let i = 0; i < 250; i++) insert.run(newReportId(dayAgoMs - i), `p${i}`, 'other')
    db.close()
    const codes = Array.from({ length: 250 }, (_, i) => `p${i}`)
    const list = ['report', 'list', '--reason=other', '--codes']
    expect(await linesOf(...list, '--limit=1000')).toEqual(codes)
    expect((await operate(...list)).stdout.split('\n').slice(0, -1)).toEqual(codes.slice(0, 50))
    expect(await linesOf(...list, '--since=23h')).toEqual([])
    const table = await linesOf('report', 'list', '--reason=other', '--limit=1000')
    const cells = table.map((line) => line.split(/ {2,}/)[2])
    expect(cells).toEqual(['CODE', ...codes])
    expect(new Set(table.map((line) => /not found|STATE/.exec(line)?.index)).size).toBe(1)
  },
  TEST_MS_MAX,
)

describe('a command exits with 2 and the allowed values if', () => {
  const errors: Record<string, RegExp> = {
    report: /report requires one of the commands list, show: none is given/,
    'report list x': /report list takes no arguments: "x" is extra/,
    'report list --code=a/b': /--code must be 1 to 10 letters, digits, - and _: it is "a\/b"/,
    'report list --reason=bad': /--reason must be one of phishing, malware, spam, illegal, other/,
    'report list --since=-1h': /--since must be a positive duration such as 24h or 7d: it is "-1h"/,
    'report list --limit=0': /--limit must be an integer from 1 to 10000: it is "0"/,
    'report list --json --codes': /takes either --json or --codes/,
    'report list --unknown': /has no option --unknown/,
    'report show': /report show requires ID: none is given/,
    'report show abc': /ID must be one that report list prints: it is "abc"/,
    'report show 1hmny8mg09q0cnnb --codes': /report show has no option --codes/,
  }
  test.each(Object.entries(errors))('%s', async (line, message) => {
    const run = await operate(...line.split(' '))
    expect([run.exitCode, run.stdout]).toEqual([2, ''])
    expect(run.stderr).toMatch(message)
    expect(run.stderr).toMatch(/^curtail: [^\n]+\n$/)
  })
})

test.each([
  ['before=1', 'invalid-type', 'before must be the id of a report: it is "1"'],
  ['since=1', 'invalid-type', 'since must be a time in RFC 3339: it is "1"'],
  ['limit=101', 'out-of-range', 'limit must be an integer from 1 to 100: it is "101"'],
  ['limit=1&limit=2', 'duplicate', 'limit occurs more than once'],
  ['code=a', 'unknown-field', '"code" is unknown: allowed are before, since and limit'],
])('the admin API rejects the query %s', async (query, code, cause) => {
  const response = await fetch(`${service.adminUrl}/admin/reports?${query}`)
  const detail = `Cannot list reports: ${cause}`
  const errors = [{ pointer: '', code, detail }]
  expect([response.status, await response.json()]).toMatchObject([422, { detail, errors }])
})

test('show of an unknown report exits with 1', async () => {
  const run = await operate('report', 'show', newReportId(Date.now()))
  expect(run).toMatchObject({ exitCode: 1, stdout: '' })
  expect(run.stderr).toMatch(/404: No report has this id, or it has expired/)
})

test(
  'a client gets 429 after the burst, and another client is admitted',
  async () => {
    const responses = await submit({ link: 'bad', details: 'kept' }, BURST + 2)
    const statuses = responses.map(({ status }) => status)
    expect(statuses).toEqual([...Array<number>(BURST).fill(201), 429, 429])
    const last = responses.at(-1)
    expect(Number(last && headerOf(last, 'Retry-After'))).toBeGreaterThan(1)
    expect(last && headerOf(last, 'X-RateLimit-Limit')).toBe(String(BURST))
    expect(String(last?.body)).toMatch(/Too many requests\. Please wait \d+ s, then retry\./)
    expect(String(last?.body)).toMatch(/id="details"[^>]*>\nkept</)
    await report({ link: 'bad' })
  },
  TEST_MS_MAX,
)

test(
  'the form returns 503 and stores nothing while the database cannot be written',
  async () => {
    const db = new DatabaseSync(join(service.dataDir, 'curtail.db'), { timeout: 5000 })
    db.exec('BEGIN IMMEDIATE')
    try {
      const [response] = await submit({ link: 'locked', details: 'kept' })
      expect(response?.status).toBe(503)
      expect(response && headerOf(response, 'Retry-After')).toBe('1')
      expect(String(response?.body)).toMatch(/id="details"[^>]*>\nkept</)
      expect(String(response?.body)).not.toMatch(/sqlite|locked<|busy/i)
    } finally {
      db.exec('ROLLBACK')
      db.close()
    }
    expect(await linesOf('report', 'list', '--code=locked', '--codes')).toEqual([])
    await report({ link: 'locked' })
  },
  TEST_MS_MAX,
)

test('the page and security.txt are served', async () => {
  const http = openHttpClient(service.port, { msMax: 10_000 })
  const bodyOf = async (path: string) => String((await http.send({ path })).body)
  const page = await bodyOf('/abuse?link=bad')
  expect(page).toMatch(/id="link"[^>]*value="bad"/)
  expect(page).toContain('<a href="/abuse">Report abuse</a>')
  const file = await bodyOf('/.well-known/security.txt')
  expect(file).toMatch(/^Contact: mailto:security@cur\.tl\nExpires: /)
  expect(file).toContain('\nCanonical: https://cur.tl/.well-known/security.txt\n')
  http.close()
})
