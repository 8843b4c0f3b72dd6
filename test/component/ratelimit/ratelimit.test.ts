// The `ratelimit` role on a real Redis: its responses over gRPC, /json and the debug port, the
// reload of its rules, and the errors that fail its start.
import { rm, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  type RateLimitReply,
  type Limiter,
  startExactLimiter,
} from '../../kit/ratelimit/limiter.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
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

function headersOf({ responseHeadersToAdd }: RateLimitReply): Record<string, string> {
  const names = responseHeadersToAdd.map(({ key }) => key)
  expect(new Set(names).size).toBe(names.length)
  return Object.fromEntries(responseHeadersToAdd.map(({ key, value }) => [key, value]))
}

describe('a call', () => {
  test('returns the remaining hits, or the time of a retry if it exceeds the limit', async () => {
    const replies = [await limiter.decide({ client: 'a' }), await limiter.decide({ client: 'a' })]
    const before = Math.floor(Date.now() / 1000)
    replies.push(await limiter.decide({ client: 'a' }))
    const after = Math.floor(Date.now() / 1000)
    expect(replies.map(({ overallCode }) => overallCode)).toEqual(['OK', 'OK', 'OVER_LIMIT'])
    const remaining = replies.map((reply) => headersOf(reply)['X-RateLimit-Remaining'])
    expect(remaining).toEqual(['1', '0', '0'])
    const [, , denied] = replies
    if (denied === undefined) throw new Error('the third reply is missing')
    const headers = headersOf(denied)
    const wait = Number(headers['Retry-After'])
    expect(wait).toBeGreaterThanOrEqual(1)
    const decided = Number(headers['X-RateLimit-Reset']) - wait
    expect(decided).toBeGreaterThanOrEqual(before - 1)
    expect(decided).toBeLessThanOrEqual(after + 1)
    expect(headers['Content-Type']).toBe('application/problem+json')
    expect(JSON.parse(Buffer.from(denied.rawBody).toString())).toMatchObject({
      type: 'https://s.example/problems/rate-limited',
      status: 429,
      rule: 'per-client',
    })
  })

  test(
    'computes the reset from the clock of Redis, even if the clock of the pod is a minute slow',
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
          const headers = headersOf(await own.decide({ client: 'skew' }))
          const hourEndSeconds = 3600 * Math.ceil(Date.now() / 3_600_000)
          expect(Number(headers['X-RateLimit-Reset']) - hourEndSeconds).toBeGreaterThanOrEqual(-1)
          expect(Number(headers['X-RateLimit-Reset']) - hourEndSeconds).toBeLessThanOrEqual(1)
        }
      } finally {
        await own.stop()
      }
    },
    TEST_MS_MAX,
  )

  test('returns the metadata of the call and of the rules that admitted it', async () => {
    const { dynamicMetadata } = await limiter.decide({ bucket: 'm' })
    const json = JSON.stringify(dynamicMetadata)
    for (const field of ['"rls"', '"ok"', '"shop"', '"bucket=m"', '"tier"', '"gold"']) {
      expect(json).toContain(field)
    }
  })

  test('may have several descriptors, and add several hits, none, or refund hits', async () => {
    const hits = (n: number, isNegative = false) => ({
      entries: [{ key: 'bucket', value: 'h' }],
      hitsAddend: { value: n },
      isNegativeHits: isNegative,
    })
    const remainingAfter = async (descriptor: ReturnType<typeof hits>) =>
      (await limiter.decide(descriptor)).statuses[0]?.limitRemaining
    expect(await remainingAfter(hits(8))).toBe(2)
    expect(await remainingAfter(hits(0))).toBe(2)
    expect(await remainingAfter(hits(4, true))).toBe(6)
    const both = await limiter.decide({ bucket: 'h' }, { path: '/a' })
    expect(both.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([5, 999])
  })

  test('with an override of an unknown unit is rejected, and the next call works', async () => {
    const override = { requestsPerUnit: 1, unit: 99 }
    const call = limiter.decide({
      entries: [{ key: 'client', value: 'x' }],
      limit: override,
    } as never)
    await expect(call).rejects.toMatchObject({ code: 3 })
    expect((await limiter.decide({ path: '/a' })).overallCode).toBe('OK')
  })
})

test('the limiter responds to /json and /healthcheck like the reference', async () => {
  const post = async (body: unknown) =>
    (await fetch(`${limiter.url}/json`, { method: 'POST', body: JSON.stringify(body) })).status
  const request = { domain: 'shop', descriptors: [{ entries: [{ key: 'client', value: 'j' }] }] }
  expect([await post(request), await post(request), await post(request)]).toEqual([200, 200, 429])
  const health = await fetch(`${limiter.url}/healthcheck`)
  expect([health.status, await health.text()]).toEqual([200, 'OK'])
})

test('every counter expires at the end of its window at the latest', async () => {
  await limiter.decide({ client: 'ttl' }, { bucket: 'ttl' }, { path: '/a' })
  const client = clientOf(redis.port)
  const keys = await client.keys('*')
  const ttls = await Promise.all(keys.map((key) => client.pttl(key)))
  client.disconnect()
  expect(keys.length).toBeGreaterThanOrEqual(3)
  expect(Math.min(...ttls)).toBeGreaterThan(0)
  expect(Math.max(...ttls)).toBeLessThanOrEqual(86_400_000)
})

describe('rules', () => {
  test(
    'are reloaded on a change; rules with faults are rejected and reported',
    async () => {
      // The window does not end between the calls.
      const yearly = rules.replace(
        'unit: hour, requests_per_unit: 2}',
        'unit: year, requests_per_unit: 2}',
      )
      const own = await startExactLimiter({ rules: yearly, redisPort: redis.port })
      try {
        const activeRules = async () => (await fetch(`${own.debugUrl}/rlconfig`)).text()
        expect(await activeRules()).toContain('shop.client: unit=YEAR requests_per_unit=2')
        await own.writeRules(yearly.replace('requests_per_unit: 2}', 'requests_per_unit: 5}'))
        await waitFor('the new rules', async () =>
          (await activeRules()).includes('requests_per_unit=5'),
        )
        await own.decide({ client: 'r' })
        expect((await own.decide({ client: 'r' })).statuses[0]?.limitRemaining).toBe(3)
        await own.writeRules('domain: shop\ndescriptors:\n  - key: ""\n')
        await waitFor('the fault', async () =>
          (await activeRules()).includes('descriptor has empty key'),
        )
        expect(await activeRules()).toContain('requests_per_unit=5')
        expect((await own.decide({ client: 'r' })).statuses[0]?.limitRemaining).toBe(2)
        const errors = () => own.log.filter(({ level }) => level === 'error')
        await waitFor('the line of the fault', () => errors().length > 0)
        expect(errors()).toHaveLength(1)
      } finally {
        await own.stop()
      }
    },
    TEST_MS_MAX,
  )

  test(
    'are reloaded on SIGHUP, and the process continues',
    async () => {
      const own = await startExactLimiter({
        rules,
        redisPort: redis.port,
        env: { RUNTIME_WATCH_ROOT: 'true' }, // edits of a file are not watched
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
      expect(await own.exited).toBe(0)
    },
    TEST_MS_MAX,
  )
})

test(
  'denied calls consume nothing of a later quota with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
  async () => {
    const quota = (requests: number) => {
      const limit = `{unit: year, requests_per_unit: ${requests}}`
      return `domain: shop\ndescriptors:\n  - {key: k, rate_limit: ${limit}}\n`
    }
    const env = { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' }
    const own = await startExactLimiter({ rules: quota(2), redisPort: redis.port, env })
    try {
      for (let call = 0; call < 9; call++) await own.decide({ k: 'raised' })
      await own.writeRules(quota(5))
      await waitFor('the new rules', async () =>
        (await (await fetch(`${own.debugUrl}/rlconfig`)).text()).includes('requests_per_unit=5'),
      )
      const { overallCode, statuses } = await own.decide({ k: 'raised' })
      expect([overallCode, statuses[0]?.limitRemaining]).toEqual(['OK', 2])
    } finally {
      await own.stop()
    }
  },
  TEST_MS_MAX,
)

describe('the start fails on', () => {
  const settings = async (yaml: string) => {
    const root = await mkdtemp(join(tmpdir(), 'curtail-rejected-'))
    await mkdir(join(root, 'config'))
    await writeFile(join(root, 'config', 'rules.yaml'), yaml)
    return { root, env: { RUNTIME_ROOT: root, REDIS_URL: '127.0.0.1:1', USE_STATSD: 'false' } }
  }

  test(
    'rules with faults, and prints each with its line',
    async () => {
      const yaml =
        'domain: shop\ndescriptors:\n  - key: ""\n  - key: a\n    rate_limit: {unit: eon}\n'
      const { root, env } = await settings(yaml)
      const run = await runCurtail(['ratelimit'], env)
      expect(run.exitCode).toBe(2)
      expect(run.stderr).toContain(':3: descriptor has empty key')
      expect(run.stderr).toContain(":5: invalid rate limit unit 'eon'")
      await rm(root, { recursive: true })
    },
    TEST_MS_MAX,
  )

  test(
    'unsupported settings, and prints each on a line',
    async () => {
      const { root, env } = await settings(rules)
      const run = await runCurtail(['ratelimit'], {
        ...env,
        BACKEND_TYPE: 'memcache',
        USE_DOG_STATSD: 'true',
        PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: 'true',
      })
      expect(run.exitCode).toBe(2)
      const lines = run.stderr.trim().split('\n')
      expect(lines).toHaveLength(3)
      expect(lines.join('\n')).toMatch(/memcache[^]*DogStatsD[^]*seconds/)
      await rm(root, { recursive: true })
    },
    TEST_MS_MAX,
  )
})
