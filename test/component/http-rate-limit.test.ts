// The limits of clients in standalone: headers on every answer of a limited request, 429 with an
// honest wait, a bucket for each client, and the rule that stops who walks the codes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from './client.ts'
import { type Answer, headerOf, headersOf, jsonOf } from './raw-http.ts'
import { runCurtail } from './run-curtail.ts'
import { type Standalone, startStandalone } from './standalone.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 30_000
const target = 'https://example.com/'

const rules = `
domain: curtail
descriptors:
  - key: route
    value: create
    descriptors:
      - key: client
        rate_limit:
          {name: creates, algorithm: token_bucket, unit: minute, requests_per_unit: 12, burst: 3}
  - key: route
    value: redirect
    descriptors:
      - key: client
        rate_limit:
          {name: redirects, algorithm: token_bucket, unit: day, requests_per_unit: 12, burst: 12}
  - key: route
    value: unknown
    descriptors:
      - key: client
        rate_limit:
          {name: unknown-codes, algorithm: sliding_window_counter, unit: day, requests_per_unit: 4}
`

let folder: string
let service: Standalone
const clients: Client[] = []
let addresses = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-limits-'))
  const file = join(folder, 'rules.yaml')
  await writeFile(file, rules)
  service = await startStandalone({ env: { RATE_LIMITS: file } })
}, TEST_MS_MAX)

afterAll(async () => {
  for (const client of clients) client.close()
  await service.stop()
  await rm(folder, { recursive: true })
}, TEST_MS_MAX)

/** A client that nobody knows yet. */
async function newClient(): Promise<Client> {
  const client = await openClient(service.port, `127.0.1.${++addresses}`)
  clients.push(client)
  return client
}

const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** Limit and what remains, each of which must be there once; the reset must lie ahead. */
function limitsOf(answer: Answer): [limit: number, remaining: number] {
  const [limit, remaining, reset] = names.map((name) => {
    expect(headersOf(answer, name)).toEqual([expect.stringMatching(/^\d+$/)])
    return Number(headerOf(answer, name))
  })
  expect(reset).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) - 1)
  return [limit ?? NaN, remaining ?? NaN]
}

/** Seconds that a 429 asks for; all else that it must say is checked. */
function waitOf(answer: Answer, rule: string): number {
  expect(answer.status).toBe(429)
  expect(limitsOf(answer)[1]).toBe(0)
  expect(headerOf(answer, 'Content-Type')).toBe('application/problem+json')
  const requestId = headerOf(answer, 'X-Request-Id')
  expect(jsonOf(answer)).toMatchObject({
    type: `${service.linkBase}/problems/rate-limited`,
    status: 429,
    rule,
    request_id: requestId,
  })
  const wait = headerOf(answer, 'Retry-After')
  expect(wait).toMatch(/^[1-9]\d*$/)
  return Number(wait)
}

describe('creates', () => {
  test('a burst passes, the next is told to wait, and passes after that wait', async () => {
    const client = await newClient()
    const remaining: number[] = []
    for (let one = 0; one < 3; one++) {
      const answer = await client.create({ long_url: target })
      expect(answer.status).toBe(201)
      const [limit, left] = limitsOf(answer)
      expect(limit).toBe(3)
      remaining.push(left)
    }
    expect(remaining).toEqual([2, 1, 0])
    const refused = await client.create({ long_url: target, custom_alias: 'later' })
    const untilMs = Date.now() + waitOf(refused, 'creates') * 1000
    expect((await (await newClient()).follow('later')).status).toBe(404) // nothing was stored
    await waitFor('the time told', () => Date.now() >= untilMs)
    expect((await client.create({ long_url: target, custom_alias: 'later' })).status).toBe(201)
  })

  test('those that fail are charged too, and say so', async () => {
    const client = await newClient()
    const asked = [
      await client.create({ long_url: 'no' }),
      await client.create('{'),
      await client.ask({ method: 'POST', path: '/v1/urls', body: 'x' }),
    ]
    expect(asked.map(({ status }) => status)).toEqual([422, 400, 415])
    expect(asked.map((answer) => limitsOf(answer)[1])).toEqual([2, 1, 0])
    waitOf(await client.create({ long_url: target }), 'creates')
  })

  test('the form of the page is a create', async () => {
    const client = await newClient()
    const post = () =>
      client.ask({
        method: 'POST',
        path: '/',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: `long_url=${encodeURIComponent(target)}`,
      })
    for (let one = 0; one < 3; one++) expect((await post()).status).toBe(201)
    const refused = await post()
    expect([refused.status, limitsOf(refused)]).toEqual([429, [3, 0]])
    expect(headerOf(refused, 'Content-Type')).toBe('text/html; charset=utf-8')
    expect(headerOf(refused, 'Retry-After')).toMatch(/^[1-5]$/)
    expect(refused.body.toString()).toContain('The limit creates is used up')
  })

  test('each client has a bucket of its own', async () => {
    const [one, other] = [await newClient(), await newClient()]
    for (let times = 0; times < 3; times++) await one.create({ long_url: target })
    waitOf(await one.create({ long_url: target }), 'creates')
    expect((await other.create({ long_url: target })).status).toBe(201)
  })
})

describe('look-ups', () => {
  test('found or not, each says what is left', async () => {
    const client = await newClient()
    await client.create({ long_url: target, custom_alias: 'found' })
    const found = await client.follow('found')
    expect([found.status, limitsOf(found)]).toEqual([302, [12, 11]])
    const head = await client.ask({ method: 'HEAD', path: '/found' })
    expect([head.status, limitsOf(head)]).toEqual([302, [12, 10]])
    const missed = await client.follow('missed')
    expect([missed.status, limitsOf(missed)]).toEqual([404, [12, 9]])
  })

  test('over the limit of look-ups: 429', async () => {
    const client = await newClient()
    await client.create({ long_url: target, custom_alias: 'often' })
    for (let one = 0; one < 12; one++) expect((await client.follow('often')).status).toBe(302)
    waitOf(await client.follow('often'), 'redirects')
  })

  test('who asked for too many unknown codes is refused known ones too', async () => {
    const [client, other] = [await newClient(), await newClient()]
    await client.create({ long_url: target, custom_alias: 'known' })
    for (let one = 0; one < 4; one++) {
      const missed = await client.follow(`miss${one}`)
      expect([missed.status, limitsOf(missed)]).toEqual([404, [12, 11 - one]])
    }
    const refused = [await client.follow('known'), await client.follow('miss9')]
    for (const answer of refused) waitOf(answer, 'unknown-codes')
    expect((await other.follow('known')).status).toBe(302)
  })

  test('what can be no code, and the pages, are not limited', async () => {
    const client = await newClient()
    for (const path of ['/', '/docs', '/not-a-code-at-all', '/a/b', '/robots.txt']) {
      const answer = await client.ask({ path })
      expect(names.flatMap((name) => headersOf(answer, name))).toEqual([])
    }
  })
})

test('the metrics count what was refused, by rule', async () => {
  const text = await (await fetch(`${service.adminUrl}/metrics`)).text()
  for (const rule of ['creates', 'redirects', 'unknown-codes']) {
    expect(text).toMatch(
      new RegExp(`^curtail_http_requests_limited_total{rule="${rule}"} [1-9]`, 'm'),
    )
  }
})

describe('RATE_LIMITS', () => {
  test(
    'unset, the shipped rules hold',
    async () => {
      const shipped = await startStandalone({ env: { RATE_LIMITS: '' } })
      const client = await openClient(shipped.port)
      try {
        const created = await client.create({ long_url: target, custom_alias: 'here' })
        expect(limitsOf(created)).toEqual([500, 499])
        expect(limitsOf(await client.follow('here'))).toEqual([10_000, 9_999])
      } finally {
        client.close()
        await shipped.stop()
      }
    },
    TEST_MS_MAX,
  )

  const refusals = {
    'a file with faults': {
      text: 'domain: curtail\ndescriptors:\n  - key: route\n    rate_limit: {unit: fortnight}\n',
      says: "rules.yaml:4: invalid rate limit unit 'fortnight'",
    },
    'a file of another domain': { text: 'domain: shop\n', says: 'must have the domain curtail' },
    'no file': { text: undefined, says: 'must name a readable file, or be off' },
  }
  test.each(Object.entries(refusals))(
    '%s stops the start',
    async (_, { text, says }) => {
      const own = await mkdtemp(join(folder, 'refused-'))
      const file = join(own, 'rules.yaml')
      if (text !== undefined) await writeFile(file, text)
      const run = await runCurtail(['standalone'], {
        RATE_LIMITS: file,
        DATA_DIR: join(own, 'data'),
      })
      expect(run.exitCode).toBe(2)
      expect(run.stderr).toContain(says)
    },
    TEST_MS_MAX,
  )
})
