// The rate limits per client in standalone: headers on every response to a limited request, 429
// with an exact Retry-After, one bucket per client, and the rule for lookups of unknown codes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import { type RawResponse, headerOf, headersOf, jsonOf } from '../../kit/http/raw-http.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

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

/** A client with a new address. */
async function newClient(): Promise<Client> {
  const client = await openClient(service.port, `127.0.1.${++addresses}`)
  clients.push(client)
  return client
}

const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** Limit and remaining; verifies that each header is present once and that the reset is ahead. */
function limitsOf(response: RawResponse): [limit: number, remaining: number] {
  const [limit, remaining, reset] = names.map((name) => {
    expect(headersOf(response, name)).toEqual([expect.stringMatching(/^\d+$/)])
    return Number(headerOf(response, name))
  })
  expect(reset).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) - 1)
  return [limit ?? NaN, remaining ?? NaN]
}

/** The seconds in Retry-After of a 429; verifies the rest of the response. */
function waitOf(response: RawResponse, rule: string): number {
  expect(response.status).toBe(429)
  expect(limitsOf(response)[1]).toBe(0)
  expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
  const requestId = headerOf(response, 'X-Request-Id')
  expect(jsonOf(response)).toMatchObject({
    type: `${service.linkBase}/problems/rate-limited`,
    status: 429,
    rule,
    request_id: requestId,
  })
  const wait = headerOf(response, 'Retry-After')
  expect(wait).toMatch(/^[1-9]\d*$/)
  return Number(wait)
}

describe('the limit of creates', () => {
  test('admits a burst, denies the next create, and admits it after Retry-After', async () => {
    const client = await newClient()
    const remaining: number[] = []
    for (let n = 0; n < 3; n++) {
      const response = await client.create({ long_url: target })
      expect(response.status).toBe(201)
      const [limit, rest] = limitsOf(response)
      expect(limit).toBe(3)
      remaining.push(rest)
    }
    expect(remaining).toEqual([2, 1, 0])
    const denied = await client.create({ long_url: target, custom_alias: 'later' })
    const untilMs = Date.now() + waitOf(denied, 'creates') * 1000
    expect((await (await newClient()).resolve('later')).status).toBe(404) // nothing stored
    await waitFor('Retry-After to pass', () => Date.now() >= untilMs)
    expect((await client.create({ long_url: target, custom_alias: 'later' })).status).toBe(201)
  })

  test('counts invalid creates, whose responses report what remains', async () => {
    const client = await newClient()
    const responses = [
      await client.create({ long_url: 'no' }),
      await client.create('{'),
      await client.send({ method: 'POST', path: '/v1/urls', body: 'x' }),
    ]
    expect(responses.map(({ status }) => status)).toEqual([422, 400, 415])
    expect(responses.map((response) => limitsOf(response)[1])).toEqual([2, 1, 0])
    waitOf(await client.create({ long_url: target }), 'creates')
  })

  test('counts the form of the page as a create', async () => {
    const client = await newClient()
    const post = () =>
      client.send({
        method: 'POST',
        path: '/',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: `long_url=${encodeURIComponent(target)}`,
      })
    for (let n = 0; n < 3; n++) expect((await post()).status).toBe(201)
    const denied = await post()
    expect([denied.status, limitsOf(denied)]).toEqual([429, [3, 0]])
    expect(headerOf(denied, 'Content-Type')).toBe('text/html; charset=utf-8')
    expect(headerOf(denied, 'Retry-After')).toMatch(/^[1-5]$/)
    expect(denied.body.toString()).toMatch(/Too many requests\. Please wait [1-5] s, then retry\./)
  })

  test('has one bucket for each client', async () => {
    const [one, other] = [await newClient(), await newClient()]
    for (let times = 0; times < 3; times++) await one.create({ long_url: target })
    waitOf(await one.create({ long_url: target }), 'creates')
    expect((await other.create({ long_url: target })).status).toBe(201)
  })
})

describe('the limits of lookups', () => {
  test('are reported by each response, whether or not the code is found', async () => {
    const client = await newClient()
    await client.create({ long_url: target, custom_alias: 'found' })
    const found = await client.resolve('found')
    expect([found.status, limitsOf(found)]).toEqual([302, [12, 11]])
    const withoutBody = await client.send({ method: 'HEAD', path: '/found' })
    expect([withoutBody.status, limitsOf(withoutBody)]).toEqual([302, [12, 10]])
    const missed = await client.resolve('missed')
    expect([missed.status, limitsOf(missed)]).toEqual([404, [12, 9]])
  })

  test('deny a redirect that exceeds them with 429', async () => {
    const client = await newClient()
    await client.create({ long_url: target, custom_alias: 'often' })
    for (let n = 0; n < 12; n++) expect((await client.resolve('often')).status).toBe(302)
    waitOf(await client.resolve('often'), 'redirects')
  })

  test('count a QR code as well', async () => {
    const client = await newClient()
    const get = () => client.send({ method: 'GET', path: '/often.svg' })
    for (let n = 0; n < 12; n++) {
      const image = await get()
      expect([image.status, limitsOf(image)]).toEqual([200, [12, 11 - n]])
    }
    waitOf(await get(), 'redirects')
  })

  test('deny every code to a client that exceeds the limit of unknown codes', async () => {
    const [client, other] = [await newClient(), await newClient()]
    await client.create({ long_url: target, custom_alias: 'existing' })
    for (let n = 0; n < 4; n++) {
      const missed = await client.resolve(`miss${n}`)
      expect([missed.status, limitsOf(missed)]).toEqual([404, [12, 11 - n]])
    }
    const denied = [await client.resolve('existing'), await client.resolve('miss9')]
    for (const response of denied) waitOf(response, 'unknown-codes')
    expect((await other.resolve('existing')).status).toBe(302)
  })

  test('do not apply to pages and to paths that cannot be codes', async () => {
    const client = await newClient()
    for (const path of ['/', '/docs', '/not-a-code-at-all', '/a/b', '/robots.txt']) {
      const response = await client.send({ path })
      expect(names.flatMap((name) => headersOf(response, name))).toEqual([])
    }
  })
})

test('the metrics count denied requests by rule', async () => {
  const text = await (await fetch(`${service.adminUrl}/metrics`)).text()
  for (const rule of ['creates', 'redirects', 'unknown-codes']) {
    expect(text).toMatch(
      new RegExp(`^curtail_http_requests_limited_total{rule="${rule}"} [1-9]`, 'm'),
    )
  }
})

describe('RATE_LIMITS', () => {
  test(
    'selects the shipped rules if it is unset',
    async () => {
      const shipped = await startStandalone({ env: { RATE_LIMITS: '' } })
      const client = await openClient(shipped.port)
      try {
        const created = await client.create({ long_url: target, custom_alias: 'here' })
        expect(limitsOf(created)).toEqual([500, 499])
        expect(limitsOf(await client.resolve('here'))).toEqual([10_000, 9_999])
      } finally {
        client.close()
        await shipped.stop()
      }
    },
    TEST_MS_MAX,
  )

  const invalid = {
    'a file with faults': {
      content: 'domain: curtail\ndescriptors:\n  - key: route\n    rate_limit: {unit: fortnight}\n',
      message: "rules.yaml:4: invalid rate limit unit 'fortnight'",
    },
    'a file of another domain': {
      content: 'domain: shop\n',
      message: 'must have the domain curtail',
    },
    'no file': { content: undefined, message: 'must name a readable file, or be off' },
  }
  test.each(Object.entries(invalid))(
    'aborts the start if it names %s',
    async (_, { content, message }) => {
      const ownFolder = await mkdtemp(join(folder, 'invalid-'))
      const file = join(ownFolder, 'rules.yaml')
      if (content !== undefined) await writeFile(file, content)
      const run = await runCurtail(['standalone'], {
        ...{ RATE_LIMITS: file, PORT: '0', ADMIN_PORT: '0' },
        DATA_DIR: join(ownFolder, 'data'),
      })
      expect(run.exitCode).toBe(2)
      expect(run.stderr).toContain(message)
    },
    TEST_MS_MAX,
  )
})
