// Three replicas of the `ratelimit` role on one Redis under concurrent calls: together they admit
// exactly the limit, with each algorithm, and report the most denied values.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Limiter, startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const REPLICAS = 3
const CALLERS = 48
const CALLS_EACH = 40
const TOKEN = 'token-of-the-admin-api'

const rules = `
domain: shop
descriptors:
  - {key: fixed_window, rate_limit: {unit: year, requests_per_unit: 100}}
  - key: sliding_window_log
    rate_limit: {algorithm: sliding_window_log, unit: hour, requests_per_unit: 100}
  - key: sliding_window_counter
    rate_limit: {algorithm: sliding_window_counter, unit: year, requests_per_unit: 100}
  - key: token_bucket
    rate_limit: {algorithm: token_bucket, unit: second, requests_per_unit: 50, burst: 100}
  - {key: one_a_year, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: leaky_bucket, rate_limit: {algorithm: leaky_bucket, unit: second, requests_per_unit: 50}}
`

let redis: RedisServer
let replicas: readonly Limiter[]

beforeAll(async () => {
  redis = await startRedis()
  replicas = await Promise.all(
    Array.from({ length: REPLICAS }, (_, at) => {
      const env: Record<string, string> = at === 0 ? { ADMIN_TOKEN: TOKEN } : {}
      return startExactLimiter({ rules, redisPort: redis.port, env })
    }),
  )
}, SETUP_MS_MAX)

afterAll(async () => {
  for (const replica of replicas) await replica.stop()
  await redis.close()
}, TEST_MS_MAX)

/** Calls all replicas concurrently. Returns the number of admitted calls, and the duration. */
async function callConcurrently(key: string): Promise<{ admitted: number; seconds: number }> {
  const startedMs = performance.now()
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    let admitted = 0
    for (let call = 0; call < CALLS_EACH; call++) {
      const reply = await replicas[(caller + call) % REPLICAS]?.decide({ [key]: 'one' })
      if (reply?.overallCode === 'OK') admitted++
    }
    return admitted
  })
  const admitted = (await Promise.all(callers)).reduce((sum, each) => sum + each, 0)
  return { admitted, seconds: (performance.now() - startedMs) / 1000 }
}

test.each(['fixed_window', 'sliding_window_log', 'sliding_window_counter'])(
  'the replicas admit exactly the limit with %s',
  async (key) => {
    expect((await callConcurrently(key)).admitted).toBe(100)
  },
  TEST_MS_MAX,
)

test(
  'the replicas admit the burst and the refilled tokens with token_bucket',
  async () => {
    const { admitted, seconds } = await callConcurrently('token_bucket')
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(admitted).toBeLessThanOrEqual(100 + Math.ceil(seconds * 50))
  },
  TEST_MS_MAX,
)

test(
  'the replicas admit one request, and one more every 20 ms, with leaky_bucket',
  async () => {
    const { admitted, seconds } = await callConcurrently('leaky_bucket')
    expect(admitted).toBeGreaterThanOrEqual(1)
    expect(admitted).toBeLessThanOrEqual(1 + Math.ceil(seconds * 50))
  },
  TEST_MS_MAX,
)

describe('the command limit', () => {
  const limit = (...args: readonly string[]) => {
    const LIMITER_URLS = replicas.map(({ debugUrl }) => debugUrl).join(', ')
    return runCurtail(['limit', ...args], { LIMITER_URLS })
  }
  const top = (...args: readonly string[]) => limit('top', ...args)

  test('explains a descriptor, and reads its counter without counting', async () => {
    const expected = (left: number) =>
      new RegExp(
        '^fixed_window=new: any value of the key, a counter for each value, at .*\n' +
          'hits shop.fixed_window: fixed_window, 100 per year\n' +
          `counter of shop.fixed_window: ${left} remaining, ` +
          'full limit available in \\d+\\.\\d s\n$',
      )
    await replicas[1]?.decide({ fixed_window: 'new' })
    for (let times = 0; times < 2; times++) {
      const { stdout, exitCode } = await limit('explain', 'shop', 'fixed_window=new')
      expect(stdout).toMatch(expected(99))
      expect(exitCode).toBe(0)
    }
    const unmatched = await limit('explain', 'shop', 'other=1')
    expect(unmatched.stdout).toContain('no rule: no descriptor matches other')
  })

  test('top adds up the denied hits that all replicas counted for a value', async () => {
    const calls = Array.from({ length: 3 }, (_, value) => [`v${value}`, 5 * (value + 1)] as const)
    for (const [value, count] of calls) {
      for (let call = 0; call < count; call++) {
        await replicas[call % REPLICAS]?.decide({ one_a_year: value })
      }
    }
    const [table, json] = await Promise.all([
      top('--rule', 'shop.one_a_year'),
      top('--rule', 'shop.one_a_year', '--by', 'hits', '--json'),
    ])
    expect(table.stdout).toBe(
      [
        'RULE             VALUES  HITS  DENIED',
        'shop.one_a_year  "v2"    15    14',
        'shop.one_a_year  "v1"    10    9',
        'shop.one_a_year  "v0"    5     4',
        '',
      ].join('\n'),
    )
    expect(JSON.parse(json.stdout)).toMatchObject([{ values: ['v2'] }, {}, {}])
    expect([table.exitCode, json.exitCode]).toEqual([0, 0])
  })

  test('resets the counters of a descriptor, and logs it', async () => {
    const [first, second] = replicas
    await first?.decide({ one_a_year: 'reset' })
    expect((await second?.decide({ one_a_year: 'reset' }))?.overallCode).toBe('OVER_LIMIT')
    const env = { ADMIN_URL: first?.adminUrl ?? '', ADMIN_TOKEN: TOKEN }
    const reset = (descriptor: string, more = {}) =>
      runCurtail(['limit', 'reset', 'shop', descriptor], { ...env, ...more })
    const run = await reset('one_a_year=reset')
    expect([run.stdout, run.exitCode]).toEqual(['counter of shop.one_a_year reset\n', 0])
    expect((await second?.decide({ one_a_year: 'reset' }))?.overallCode).toBe('OK')
    const logged = { domain: 'shop', rule: 'shop.one_a_year', values: ['reset'] }
    const isReset = ({ msg }: { msg?: unknown }) => msg === 'counter reset by an operator'
    await waitFor('the line of the reset', () => first?.log.some(isReset) === true)
    expect(first?.log.filter(isReset)).toMatchObject([logged])
    expect((await reset('other=1')).stdout).toContain('no limit applies')
    expect((await reset('one_a_year=reset', { ADMIN_TOKEN: 'wrong' })).stderr).toContain('401')
    const url = `${env.ADMIN_URL}/admin/limits/reset`
    const headers = { Authorization: `Bearer ${TOKEN}` }
    expect((await fetch(url, { method: 'POST', headers })).status).toBe(422)
    expect((await fetch(url, { headers })).status).toBe(405)
    const withoutToken = replicas[2]?.adminUrl ?? ''
    expect((await fetch(`${withoutToken}/admin/limits/reset`, { method: 'POST' })).status).toBe(404)
  })

  test('reports a wrong argument or URL', async () => {
    const [unknown, by, descriptor, verb, url] = await Promise.all([
      top('--all'),
      top('--by', 'size'),
      limit('explain', 'shop', 'fixed_window'),
      limit('clear'),
      runCurtail(['limit', 'top'], { LIMITER_URLS: 'http://127.0.0.1:1' }),
    ])
    const codes = [unknown, by, descriptor, verb, url].map(({ exitCode }) => exitCode)
    expect(codes).toEqual([2, 2, 2, 2, 1])
    expect(descriptor.stderr).toContain('a DOMAIN and a descriptor: key=value,key=value')
    expect(verb.stderr).toContain('limit requires one of the commands top, explain, reset')
    expect(unknown.stderr).toContain('allowed are --rule, --by, --json')
    expect(by.stderr).toContain('--by must be one of denied, hits: it is "size"')
    expect(url.stderr).toMatch(/the debug port at http:\/\/127\.0\.0\.1:1 .*check LIMITER_URLS; /)
    expect(url.stderr).toMatch(
      /; LIMITER_URLS must be the URLs of the debug ports .*: standalone has no limiter/,
    )
  })
})

test('the replicas use no fallback', async () => {
  for (const { adminUrl } of replicas) {
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    expect(metrics).not.toContain('source="fallback"')
  }
})
