// The real `ratelimit` role on a real Redis: what it answers over gRPC, /json and the debug port,
// how it follows its files, and what stops its start.
import { rm, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import { type Answered, type Limiter, startExactLimiter } from './limiter.ts'
import { runCurtail } from './run-curtail.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 60_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed

const rules = `
domain: shop
descriptors:
  - key: client
    rate_limit: {name: per-client, unit: hour, requests_per_unit: 2}
  - key: bucket
    metadata: {tier: gold}
    rate_limit: {algorithm: token_bucket, unit: hour, requests_per_unit: 1, burst: 10}
  - key: path
    value: /a
    rate_limit: {unit: day, requests_per_unit: 1000}
`

let redis: RedisServer
let limiter: Limiter

beforeAll(async () => {
  redis = await startRedis()
  const env = { RESPONSE_DYNAMIC_METADATA: 'true', BASE_URL: 'https://s.example' }
  limiter = await startExactLimiter({ rules, redisPort: redis.port, env })
}, SETUP_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  await redis.close()
}, TEST_MS_MAX)

function headersOf({ responseHeadersToAdd }: Answered): Record<string, string> {
  const names = responseHeadersToAdd.map(({ key }) => key)
  expect(new Set(names).size).toBe(names.length)
  return Object.fromEntries(responseHeadersToAdd.map(({ key, value }) => [key, value]))
}

describe('a call', () => {
  test('says what is left, and over its limit when to come again', async () => {
    const answers = [
      await limiter.ask({ client: 'a' }),
      await limiter.ask({ client: 'a' }),
      await limiter.ask({ client: 'a' }),
    ]
    expect(answers.map(({ overallCode }) => overallCode)).toEqual(['OK', 'OK', 'OVER_LIMIT'])
    const remaining = answers.map((answer) => headersOf(answer)['X-RateLimit-Remaining'])
    expect(remaining).toEqual(['1', '0', '0'])
    const [, , denied] = answers
    if (denied === undefined) throw new Error('there is no third answer')
    const headers = headersOf(denied)
    const wait = Number(headers['Retry-After'])
    expect(wait).toBeGreaterThanOrEqual(1)
    const now = Math.floor(Date.now() / 1000)
    expect(Math.abs(Number(headers['X-RateLimit-Reset']) - now - wait)).toBeLessThanOrEqual(1)
    expect(headers['Content-Type']).toBe('application/problem+json')
    expect(JSON.parse(Buffer.from(denied.rawBody).toString())).toMatchObject({
      type: 'https://s.example/problems/rate-limited',
      status: 429,
      rule: 'per-client',
    })
  })

  test(
    'tells the reset by the clock of Redis, also where the clock of the pod is a minute slow',
    async () => {
      const slow = 'const now = Date.now; Date.now = () => now() - 60_000'
      const own = await startExactLimiter({
        rules,
        redisPort: redis.port,
        env: {
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(slow)}`,
          LOCAL_CACHE_SIZE_IN_BYTES: '100000',
        },
      })
      try {
        for (let call = 0; call < 4; call++) {
          const headers = headersOf(await own.ask({ client: 'skew' }))
          const hourEnds = 3600 * Math.ceil(Date.now() / 3_600_000)
          expect(Number(headers['X-RateLimit-Reset']) - hourEnds).toBeGreaterThanOrEqual(-1)
          expect(Number(headers['X-RateLimit-Reset']) - hourEnds).toBeLessThanOrEqual(1)
        }
      } finally {
        await own.stop()
      }
    },
    TEST_MS_MAX,
  )

  test('has the metadata of the call and of the rules that let it pass', async () => {
    const { dynamicMetadata } = await limiter.ask({ bucket: 'm' })
    const text = JSON.stringify(dynamicMetadata)
    for (const said of ['"rls"', '"ok"', '"shop"', '"bucket=m"', '"tier"', '"gold"']) {
      expect(text).toContain(said)
    }
  })

  test('may ask about several descriptors, take several hits, look and give back', async () => {
    const hits = (n: number, isNegative = false) => ({
      entries: [{ key: 'bucket', value: 'h' }],
      hitsAddend: { value: n },
      isNegativeHits: isNegative,
    })
    const left = async (asked: ReturnType<typeof hits>) =>
      (await limiter.ask(asked)).statuses[0]?.limitRemaining
    expect(await left(hits(8))).toBe(2)
    expect(await left(hits(0))).toBe(2)
    expect(await left(hits(4, true))).toBe(6)
    const both = await limiter.ask({ bucket: 'h' }, { path: '/a' })
    expect(both.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([5, 999])
  })

  test('with an override of no known unit is refused, and nothing breaks', async () => {
    const override = { requestsPerUnit: 1, unit: 99 }
    const asked = limiter.ask({
      entries: [{ key: 'client', value: 'x' }],
      limit: override,
    } as never)
    await expect(asked).rejects.toMatchObject({ code: 3 })
    expect((await limiter.ask({ path: '/a' })).overallCode).toBe('OK')
  })
})

test('/json and /healthcheck answer as the reference does', async () => {
  const post = async (body: unknown) =>
    (await fetch(`${limiter.url}/json`, { method: 'POST', body: JSON.stringify(body) })).status
  const request = { domain: 'shop', descriptors: [{ entries: [{ key: 'client', value: 'j' }] }] }
  expect([await post(request), await post(request), await post(request)]).toEqual([200, 200, 429])
  const health = await fetch(`${limiter.url}/healthcheck`)
  expect([health.status, await health.text()]).toEqual([200, 'OK'])
})

test('no counter lives longer than its window, and none without an end', async () => {
  await limiter.ask({ client: 'ttl' }, { bucket: 'ttl' }, { path: '/a' })
  const client = clientOf(redis.port)
  const keys = await client.keys('*')
  const lives = await Promise.all(keys.map((key) => client.pttl(key)))
  client.disconnect()
  expect(keys.length).toBeGreaterThanOrEqual(3)
  expect(Math.min(...lives)).toBeGreaterThan(0)
  expect(Math.max(...lives)).toBeLessThanOrEqual(86_400_000)
})

describe('rules', () => {
  test(
    'that change come into force; those with faults do not, and are told',
    async () => {
      const own = await startExactLimiter({ rules, redisPort: redis.port })
      try {
        const shown = async () => (await fetch(`${own.debugUrl}/rlconfig`)).text()
        expect(await shown()).toContain('shop.client: unit=HOUR requests_per_unit=2')
        await own.writeRules(rules.replace('requests_per_unit: 2}', 'requests_per_unit: 5}'))
        await waitFor('the new rules', async () => (await shown()).includes('requests_per_unit=5'))
        await own.ask({ client: 'r' })
        expect((await own.ask({ client: 'r' })).statuses[0]?.limitRemaining).toBe(3)
        await own.writeRules('domain: shop\ndescriptors:\n  - key: ""\n')
        await waitFor('the fault', async () => (await shown()).includes('descriptor has empty key'))
        expect(await shown()).toContain('requests_per_unit=5')
        expect((await own.ask({ client: 'r' })).statuses[0]?.limitRemaining).toBe(2)
        expect(own.log.filter(({ level }) => level === 'error')).toHaveLength(1)
      } finally {
        await own.stop()
      }
    },
    TEST_MS_MAX,
  )

  test(
    'are read again at SIGHUP, which ends nothing',
    async () => {
      const own = await startExactLimiter({
        rules,
        redisPort: redis.port,
        env: { RUNTIME_WATCH_ROOT: 'true' }, // no change of a file is noticed
      })
      try {
        await own.writeRules(rules.replace('requests_per_unit: 2}', 'requests_per_unit: 7}'))
        own.child.kill('SIGHUP')
        await waitFor('the new rules', async () =>
          (await (await fetch(`${own.debugUrl}/rlconfig`)).text()).includes('requests_per_unit=7'),
        )
      } finally {
        await own.stop()
      }
      expect(await own.ended).toBe(0)
    },
    TEST_MS_MAX,
  )
})

test(
  'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: what was denied eats no raised quota',
  async () => {
    const quota = (requests: number) => {
      const limit = `{unit: year, requests_per_unit: ${requests}}`
      return `domain: shop\ndescriptors:\n  - {key: k, rate_limit: ${limit}}\n`
    }
    const env = { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' }
    const own = await startExactLimiter({ rules: quota(2), redisPort: redis.port, env })
    try {
      for (let call = 0; call < 9; call++) await own.ask({ k: 'raised' })
      await own.writeRules(quota(5))
      await waitFor('the new rules', async () =>
        (await (await fetch(`${own.debugUrl}/rlconfig`)).text()).includes('requests_per_unit=5'),
      )
      const { overallCode, statuses } = await own.ask({ k: 'raised' })
      expect([overallCode, statuses[0]?.limitRemaining]).toEqual(['OK', 2])
    } finally {
      await own.stop()
    }
  },
  TEST_MS_MAX,
)

describe('the start is stopped by', () => {
  const settings = async (text: string) => {
    const root = await mkdtemp(join(tmpdir(), 'curtail-refused-'))
    await mkdir(join(root, 'config'))
    await writeFile(join(root, 'config', 'rules.yaml'), text)
    return { root, env: { RUNTIME_ROOT: root, REDIS_URL: '127.0.0.1:1', USE_STATSD: 'false' } }
  }

  test(
    'rules with faults, all of them told with their lines',
    async () => {
      const text =
        'domain: shop\ndescriptors:\n  - key: ""\n  - key: a\n    rate_limit: {unit: eon}\n'
      const { root, env } = await settings(text)
      const run = await runCurtail(['ratelimit'], env)
      expect(run.exitCode).toBe(1)
      expect(run.stderr).toContain(':3: descriptor has empty key')
      expect(run.stderr).toContain(":5: invalid rate limit unit 'eon'")
      await rm(root, { recursive: true })
    },
    TEST_MS_MAX,
  )

  test(
    'what we do not do, each in a line',
    async () => {
      const { root, env } = await settings(rules)
      const run = await runCurtail(['ratelimit'], {
        ...env,
        BACKEND_TYPE: 'memcache',
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        MEMCACHE_HOST_PORT: 'localhost:11211',
      })
      expect(run.exitCode).toBe(2)
      const lines = run.stderr.trim().split('\n')
      expect(lines).toHaveLength(3)
      expect(lines.join('\n')).toMatch(/memcache[^]*xDS|xDS[^]*memcache/)
      await rm(root, { recursive: true })
    },
    TEST_MS_MAX,
  )
})
