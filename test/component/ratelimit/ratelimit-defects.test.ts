// Defects of other limiters, which no algorithm of the `ratelimit` role may have on a real
// Redis: counters that outlive their window, ignored hit counts, and failing limits of 1.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type Limiter, startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const bursting = ['fixed_window', 'sliding_window_log', 'sliding_window_counter', 'token_bucket']
const all = [...bursting, 'leaky_bucket']

const rule = (key: string, algorithm: string, limit: string) =>
  `  - {key: ${key}_${algorithm}, rate_limit: {algorithm: ${algorithm}, ${limit}}}\n`
const rules = [
  'domain: shop\ndescriptors:\n',
  ...all.map((name) => rule('short', name, 'window: 500ms, requests_per_unit: 5')),
  ...all.map((name) => rule('second', name, 'unit: second, requests_per_unit: 5')),
  ...bursting.map((name) =>
    rule('ten', name, 'unit: year, requests_per_unit: 10, deny_consumes: false'),
  ),
  ...all.map((name) => rule('one', name, 'unit: year, requests_per_unit: 1')),
].join('')

let redis: RedisServer
let limiter: Limiter

beforeAll(async () => {
  redis = await startRedis()
  limiter = await startExactLimiter({ rules, redisPort: redis.port })
}, SETUP_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  await redis.close()
}, TEST_MS_MAX)

let values = 0
const fresh = () => `v${++values}`

describe.each([
  ['short', 500],
  ['second', 1000],
])('a counter with a %s window', (kind, windowMs) => {
  test.each(all)(
    'expires after its window: %s',
    async (algorithm) => {
      const client = clientOf(redis.port)
      await client.flushall()
      const key = `${kind}_${algorithm}`
      const value = fresh()
      const codes: string[] = []
      for (let hit = 0; hit < 8; hit++)
        codes.push((await limiter.decide({ [key]: value })).overallCode)
      const [name = ''] = await client.keys('*')
      const ttlMs = name === '' ? 0 : await client.pttl(name) // -2 if it has expired meanwhile
      expect(ttlMs).not.toBe(-1)
      expect(ttlMs).toBeLessThanOrEqual(2 * windowMs)
      await waitFor('its expiry', async () => (await client.dbsize()) === 0, 5 * windowMs)
      client.disconnect()
      expect(codes[0]).toBe('OK')
    },
    TEST_MS_MAX,
  )
})

const hits = (key: string, value: string, n: number) => ({
  entries: [{ key, value }],
  hitsAddend: { value: n },
})

test.each(bursting)(
  'a call counts all of its hits, and denied hits consume nothing: %s',
  async (algorithm) => {
    const value = fresh()
    const codes: string[] = []
    for (const n of [7, 7, 7, 4, 3, 1]) {
      codes.push((await limiter.decide(hits(`ten_${algorithm}`, value, n))).overallCode)
    }
    const denied = 'OVER_LIMIT'
    expect(codes).toEqual(['OK', denied, denied, denied, 'OK', denied])
  },
)

test.each(all)('a limit of 1 admits exactly one request: %s', async (algorithm) => {
  const descriptor = { [`one_${algorithm}`]: fresh() }
  const codes = [await limiter.decide(descriptor), await limiter.decide(descriptor)]
  expect(codes.map(({ overallCode }) => overallCode)).toEqual(['OK', 'OVER_LIMIT'])
})
