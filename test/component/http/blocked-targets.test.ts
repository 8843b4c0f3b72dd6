// Blocked targets of the real standalone process: creates, redirects and imported links of blocked
// hosts and URLs, and changes of the files while it runs. Every response is validated against
// /openapi.json.
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { THREAD_BYTES_MIN } from '../../../src/resolve/blocked/load-blocked-targets.ts'
import { type Client, openClient } from '../../kit/http/client.ts'
import { headerOf, jsonOf } from '../../kit/http/raw-http.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
/** The watch reloads a changed file within this time. */
const RELOAD_MS_MAX = 5 * 5000

let folder: string
let service: Standalone
let client: Client

/** Replaces a file of the list at once. */
async function writeList(name: string, content: string): Promise<void> {
  await writeFile(join(folder, `.${name}`), content)
  await rename(join(folder, `.${name}`), join(folder, name))
}

async function metric(line: string): Promise<string | undefined> {
  const exposed = await (await fetch(`${service.adminUrl}/metrics`)).text()
  return exposed
    .split('\n')
    .find((each) => each.startsWith(`${line} `))
    ?.slice(line.length + 1)
}

const waitForStatus = (path: string, status: number) =>
  waitFor(
    `${path} with ${status}`,
    async () => (await client.resolve(path)).status === status,
    RELOAD_MS_MAX,
  )

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-blocked-'))
  await writeList('list.txt', 'evil.example\nsites.example/bad # phishing\n*.wrong.example\n')
  service = await startStandalone({ env: { BLOCKED_TARGETS: folder } })
  client = await openClient(service.port)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

test('faulty lines are counted and logged; the other lines are in use', async () => {
  expect(await metric('curtail_list_entries{list="blocked-targets"}')).toBe('2')
  expect(await metric('curtail_list_faults{list="blocked-targets"}')).toBe('1')
  const logged = service.log.find(({ msg }) => msg === 'lines of a list ignored')
  expect(logged).toMatchObject({ list: 'blocked-targets', faults: 1 })
  expect(JSON.stringify(logged)).toContain('list.txt:3: the entry must not be a pattern')
})

test('a create of a blocked target is rejected, of others accepted', async () => {
  for (const long_url of ['https://www.EVIL.example:8443/a', 'http://sites.example/x/../%62ad']) {
    const response = await client.create({ long_url })
    expect([response.status, headerOf(response, 'content-type')]).toEqual([
      422,
      'application/problem+json',
    ])
    expect(jsonOf(response)).toMatchObject({
      type: `${service.linkBase}/problems/target-blocked`,
      status: 422,
    })
  }
  expect((await client.create({ long_url: 'http://sites.example/good' })).status).toBe(201)
  expect((await client.create({ long_url: 'http://notevil.example/' })).status).toBe(201)
  expect(await metric('curtail_blocked_total{route="create"}')).toBe('2')
})

test('the form of the home page rejects a blocked target', async () => {
  const response = await fetch(`${service.baseUrl}/`, {
    method: 'POST',
    body: new URLSearchParams({ long_url: 'https://evil.example/' }),
  })
  expect(response.status).toBe(422)
  expect(await response.text()).toContain('The operator of this service blocks this target')
})

/** Imports a link with a blocked target. */
async function importBlocked(code: string): Promise<void> {
  const row = {
    short_code: code,
    long_url: 'https://evil.example/',
    created_at: null,
    expires_at: null,
    creator_id: null,
    state: 'active',
  }
  const response = await fetch(`${service.adminUrl}/admin/links/import`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify([row]),
  })
  expect(await response.json()).toMatchObject({ results: [{ result: 'created' }] })
}

test('an imported link with a blocked target is stored, but does not redirect', async () => {
  await importBlocked('imported1')
  const redirect = await fetch(`${service.baseUrl}/imported1`, { redirect: 'manual' })
  expect(redirect.status).not.toBe(302)
})

test(
  'operators see that an active link is blocked; an export does not have it',
  async () => {
    const good = { long_url: 'https://good.example/', custom_alias: 'good' }
    expect((await client.create(good)).status).toBe(201)
    await importBlocked('imported2')
    const report = { link: 'imported2', reason: 'phishing' }
    const form = { method: 'POST', body: new URLSearchParams(report) }
    expect((await fetch(`${service.baseUrl}/abuse`, form)).ok).toBe(true)
    const operate = async (line: string) => {
      const run = await runCurtail(line.split(' '), { ADMIN_URL: service.adminUrl })
      expect([run.exitCode, run.stderr]).toEqual([0, ''])
      const lines = run.stdout.trim().split('\n')
      return lines.map((line) => line.split(/ {2,}/))
    }
    const stateOf = (rows: string[][], code: string) =>
      rows.find((row) => row.includes(code))?.find((cell) => /^(active|blocked)$/.test(cell))
    expect(stateOf(await operate('link show imported2'), 'imported2')).toBe('blocked')
    expect(stateOf(await operate('report list'), 'imported2')).toBe('blocked')
    const all = await operate('link list')
    expect([stateOf(all, 'imported2'), stateOf(all, 'good')]).toEqual(['blocked', 'active'])
    const codesIn = async (state: string) =>
      (await operate(`link list --state=${state}`)).map(([code]) => code)
    expect(await codesIn('blocked')).toContain('imported2')
    expect(await codesIn('blocked')).not.toContain('good')
    expect(await codesIn('active')).not.toContain('imported2')
    const [[json]] = (await operate('link show imported2 --json')) as [[string]]
    expect(JSON.parse(json)).toMatchObject({ state: 'active', target_blocked: true })
    const exported = await operate('export')
    expect(exported.join('')).toContain('imported2')
    expect(exported.join('')).not.toContain('target_blocked')
  },
  2 * TEST_MS_MAX, // it starts eight processes
)

test(
  'a link whose target is blocked later is not found, until the entry is removed',
  async () => {
    const body = { long_url: 'https://shop.example/bad?item=1', custom_alias: 'later' }
    expect((await client.create(body)).status).toBe(201)
    expect((await client.resolve('later')).status).toBe(302)
    await writeList('second.txt', 'shop.example/bad\n')
    await waitForStatus('later', 404)
    const [blocked, unknown] = [await client.resolve('later'), await client.resolve('unknown')]
    expect(jsonOf(blocked)).toMatchObject({ detail: jsonOf(unknown)['detail'] })
    expect(Number(await metric('curtail_blocked_total{route="redirect"}'))).toBeGreaterThan(0)
    expect(await metric('curtail_list_entries{list="blocked-targets"}')).toBe('3')
    await writeList('second.txt', '')
    await waitForStatus('later', 302)
  },
  TEST_MS_MAX,
)

test(
  'a large file is loaded while the process serves requests',
  async () => {
    const body = { long_url: 'https://host19999.large.example/', custom_alias: 'large' }
    expect((await client.create(body)).status).toBe(201)
    const lines = Array.from({ length: 20_000 }, (_, i) => `host${i}.large.example\n`)
    await writeList('large.txt', `# ${'x'.repeat(THREAD_BYTES_MIN)}\n${lines.join('')}`)
    await waitForStatus('large', 404)
    expect(await metric('curtail_list_entries{list="blocked-targets"}')).toBe('20002')
    await writeList('large.txt', '')
    await waitForStatus('large', 302)
  },
  TEST_MS_MAX,
)

test(
  'with BLOCKED_STATUS=451 the response has this status',
  async () => {
    const other = await startStandalone({
      env: { BLOCKED_TARGETS: join(folder, 'list.txt'), BLOCKED_STATUS: '451' },
    })
    const otherClient = await openClient(other.port)
    try {
      const body = { long_url: 'https://example.org/', custom_alias: 'legal' }
      expect((await otherClient.create(body)).status).toBe(201)
      await writeList('list.txt', 'example.org\n')
      await waitFor(
        'the status 451',
        async () => (await otherClient.resolve('legal')).status === 451,
        RELOAD_MS_MAX,
      )
      expect(jsonOf(await otherClient.resolve('legal'))).toMatchObject({
        type: `${other.linkBase}/problems/unavailable-for-legal-reasons`,
      })
    } finally {
      otherClient.close()
      await other.stop()
    }
  },
  TEST_MS_MAX,
)
