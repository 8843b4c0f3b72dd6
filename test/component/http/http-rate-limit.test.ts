// The rate limits per client in standalone: headers on every response to a limited request, 429
// with an exact Retry-After, one bucket per client, and the rule for lookups of unknown codes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  headersOf,
  jsonOf,
} from '../../kit/http/raw-http.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const target = 'https://example.com/'

/** In this time, a bucket of creates is refilled by one. */
const REFILL_MS = 5000
const TRIES_MAX = 5

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

/** When the request of a response was sent, by `Date.now()`. */
const sentMs = new WeakMap<RawResponse, number>()

/** A client, by default with a new address. */
async function newClient(from = `127.0.1.${++addresses}`, { port } = service): Promise<Client> {
  const client = await openClient(port, from)
  clients.push(client)
  const timed =
    <A extends readonly unknown[]>(send: (...args: A) => Promise<RawResponse>) =>
    async (...args: A) => {
      const startedMs = Date.now()
      const response = await send(...args)
      sentMs.set(response, startedMs)
      return response
    }
  return {
    send: timed((request: RawRequest) => client.send(request)),
    create: timed((body: unknown) => client.create(body)),
    resolve: timed((code: string) => client.resolve(code)),
    close() {
      client.close()
    },
  }
}

const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** Limit and remaining; verifies that each header is present once and that the reset is ahead. */
function limitsOf(response: RawResponse): [limit: number, remaining: number] {
  const [limit, remaining, reset] = names.map((name) => {
    expect(headersOf(response, name)).toEqual([expect.stringMatching(/^\d+$/)])
    return Number(headerOf(response, name))
  })
  expect(reset).toBeGreaterThanOrEqual(Math.floor((sentMs.get(response) ?? NaN) / 1000))
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

/** The responses to `requests` of a new client, before the bucket of its creates is refilled. */
async function sendBeforeRefill(
  ...requests: readonly ((client: Client) => Promise<RawResponse>)[]
): Promise<{ readonly client: Client; readonly responses: readonly RawResponse[] }> {
  for (let tries = 1; ; tries++) {
    const client = await newClient()
    const responses: RawResponse[] = []
    const startedMs = performance.now()
    for (const send of requests) responses.push(await send(client))
    const isBefore = performance.now() - startedMs < REFILL_MS
    if (isBefore || tries === TRIES_MAX) return { client, responses }
  }
}

const create = (client: Client) => client.create({ long_url: target })

describe('the limit of creates', () => {
  test('admits a burst, denies the next create, and admits it after Retry-After', async () => {
    let alias = ''
    const createLater = (one: Client) => one.create({ long_url: target, custom_alias: alias })
    const { client, responses } = await sendBeforeRefill(create, create, create, (one) => {
      alias = `later${addresses}` // a slow attempt may create one
      return createLater(one)
    })
    const [denied, ...admitted] = responses.toReversed()
    expect(admitted.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(admitted.map(limitsOf)).toEqual([0, 1, 2].map((remaining) => [3, remaining]))
    if (denied === undefined) throw new Error('no response')
    const untilMs = Date.now() + waitOf(denied, 'creates') * 1000
    expect((await (await newClient()).resolve(alias)).status).toBe(404) // nothing stored
    await waitFor('Retry-After to pass', () => Date.now() >= untilMs)
    expect((await createLater(client)).status).toBe(201)
  })

  test('counts invalid creates, whose responses report what remains', async () => {
    const { responses } = await sendBeforeRefill(
      (client) => client.create({ long_url: 'no' }),
      (client) => client.create('{'),
      (client) => client.send({ method: 'POST', path: '/v1/urls', body: 'x' }),
      create,
    )
    expect(responses.map(({ status }) => status)).toEqual([422, 400, 415, 429])
    expect(responses.map((response) => limitsOf(response)[1])).toEqual([2, 1, 0, 0])
    for (const response of responses.slice(3)) waitOf(response, 'creates')
  })

  test('counts the form of the page as a create', async () => {
    const post = (client: Client) =>
      client.send({
        method: 'POST',
        path: '/',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: `long_url=${encodeURIComponent(target)}`,
      })
    const { responses } = await sendBeforeRefill(post, post, post, post)
    expect(responses.map(({ status }) => status)).toEqual([201, 201, 201, 429])
    const [, , , denied] = responses
    if (denied === undefined) throw new Error('no response')
    expect(limitsOf(denied)).toEqual([3, 0])
    expect(headerOf(denied, 'Content-Type')).toBe('text/html; charset=utf-8')
    expect(headerOf(denied, 'Retry-After')).toMatch(/^[1-5]$/)
    expect(denied.body.toString()).toMatch(/Too many requests\. Please wait [1-5] s, then retry\./)
  })

  test('has one bucket for each client', async () => {
    const other = await newClient()
    const { responses } = await sendBeforeRefill(create, create, create, create, () =>
      create(other),
    )
    expect(responses.map(({ status }) => status)).toEqual([201, 201, 201, 429, 201])
    for (const response of responses.slice(3, 4)) waitOf(response, 'creates')
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
      const client = await newClient(undefined, shipped)
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
