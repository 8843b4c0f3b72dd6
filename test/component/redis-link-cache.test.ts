// The link cache on a Redis that is absent, hangs, dies, forgets, is a replica or holds what is not
// ours: a call fails with StoreError in its time, and Redis is used again when it is back.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Target } from '../../src/links/decide-redirect.ts'
import { StoreError } from '../../src/process/store-error.ts'
import { COMMAND_MS_MAX, UNDER_WAY_MAX } from '../../src/stores/redis/link-cache-commands.ts'
import { encodeEntry, type InvalidReason } from '../../src/stores/redis/link-cache-entry.ts'
import { freePort } from '../parts/free-ports.ts'
import {
  clientOf,
  FAILOVER_MS_MAX,
  makeCertificate,
  type RedisServer,
  startRedis,
  startSentinel,
} from '../parts/redis.ts'
import {
  answers,
  openCache,
  openReadyCache,
  PATIENT_MS_MAX,
  type UsedCache,
} from './link-cache-use.ts'
import { failureOf } from './redis-use.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 60_000
const target: Target = { longUrl: 'https://example.com/', expiresAtMs: null }
const patient = { commandMsMax: PATIENT_MS_MAX }

let server: RedisServer
let url: string
beforeAll(async () => {
  server = await startRedis()
  url = `redis://127.0.0.1:${String(server.port)}`
}, 600_000)
afterAll(() => server.close())

let codesMade = 0
const newCode = () => `code${String(codesMade++)}`

async function permitFor({ cache }: UsedCache, code: string): Promise<string> {
  const seen = await cache.look(code)
  if (seen.kind !== 'unknown' || seen.permit === undefined) throw new Error('there is no permit')
  return seen.permit
}

async function remember(used: UsedCache, code: string): Promise<boolean> {
  const permit = await permitFor(used, code)
  return used.cache.fill({ code, permit, target, nowMs: Date.now() })
}

async function isAway({ metrics }: UsedCache): Promise<boolean> {
  return (await metrics.linkCacheAway.get()).values[0]?.value === 1
}

/** Looks in vain until the cache is left alone. */
async function untilAway(used: UsedCache): Promise<void> {
  await waitFor('the breaker', async () => {
    await failureOf(used.cache.look(newCode()))
    return isAway(used)
  })
}

async function untilBack(used: UsedCache, msMax?: number): Promise<void> {
  await waitFor('the way back', async () => !(await isAway(used)) && answers(used.cache), msMax)
}

async function failuresOf({ metrics }: UsedCache): Promise<Record<string, number>> {
  const { values } = await metrics.linkCacheFailures.get()
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.why), value]))
}

describe('Redis away', () => {
  test('absent at the start: calls fail at once; it is used as soon as it is there', async () => {
    const port = await freePort()
    const used = openCache(`redis://127.0.0.1:${String(port)}`)
    const { error, tookMs } = await failureOf(used.cache.look('code'))
    expect(error.outcome).toBe('not-done')
    expect(tookMs).toBeLessThan(5 * COMMAND_MS_MAX)
    expect((await failureOf(used.cache.forget('code'))).error.outcome).toBe('unknown')
    const late = await startRedis([], { port })
    await untilBack(used)
    expect(await remember(used, 'code')).toBe(true)
    expect(used.told).toEqual(['down', 'up'])
    await used.cache.close()
    await late.close()
  })

  test('hung: calls end in their time, then are not made, until it goes on', async () => {
    const used = await openReadyCache(url)
    const code = newCode()
    await remember(used, code)
    server.stop()
    try {
      const calls = [used.cache.look(code), used.cache.forget(newCode())]
      for (const call of calls) {
        expect((await failureOf(call)).tookMs).toBeLessThan(5 * COMMAND_MS_MAX)
      }
      await untilAway(used)
      const before = await failuresOf(used)
      await failureOf(used.cache.look(code))
      expect(await failuresOf(used)).toEqual({ ...before, away: (before['away'] ?? 0) + 1 })
      expect(before['late']).toBeGreaterThanOrEqual(5)
    } finally {
      server.resume()
    }
    await untilBack(used)
    expect(await used.cache.look(code)).toEqual({ kind: 'hit', target })
    await used.cache.close()
  })

  test('hung: no more calls wait than are allowed', async () => {
    const used = await openReadyCache(url)
    server.stop()
    try {
      const calls = Array.from({ length: UNDER_WAY_MAX }, () => used.cache.forget('code'))
      const settled = Promise.allSettled(calls)
      const { error } = await failureOf(used.cache.forget('code'))
      expect(error.message).toBe(
        `${String(UNDER_WAY_MAX)} commands wait for the link cache already`,
      )
      expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    } finally {
      server.resume()
    }
    await untilBack(used)
    await used.cache.close()
  })

  test('killed and restarted empty: permits are gone, the script is sent anew', async () => {
    const used = await openReadyCache(url, patient)
    const code = newCode()
    expect(await remember(used, newCode())).toBe(true)
    const permit = await permitFor(used, code)
    await server.kill()
    await failureOf(used.cache.look(code))
    await server.restart()
    await untilBack(used)
    expect(await used.cache.fill({ code, permit, target, nowMs: Date.now() })).toBe(false)
    expect(await remember(used, newCode())).toBe(true)
    await used.cache.close()
  })

  test('flushed while an entry is on its way: it is refused', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    const permit = await permitFor(used, code)
    await client.flushall()
    await client.script('FLUSH')
    expect(await used.cache.fill({ code, permit, target, nowMs: Date.now() })).toBe(false)
    expect(await remember(used, code)).toBe(true)
    client.disconnect()
    await used.cache.close()
  })

  test('become a replica: it is left alone although it answers, until it is a master', async () => {
    const replica = await startRedis()
    const used = await openReadyCache(`redis://127.0.0.1:${String(replica.port)}`)
    const client = clientOf(replica.port)
    await client.replicaof('127.0.0.1', await freePort())
    await expect(used.cache.forget('code')).rejects.toBeInstanceOf(StoreError)
    await waitFor('the breaker', async () => {
      await failureOf(used.cache.forget('code'))
      return isAway(used)
    })
    const refused = async () =>
      Number(/cmdstat_del:.*rejected_calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
    const before = await refused()
    await waitFor('probes', async () => (await refused()) > before + 2)
    expect(await isAway(used)).toBe(true)
    await client.replicaof('NO', 'ONE')
    await untilBack(used)
    client.disconnect()
    await used.cache.close()
    await replica.close()
  })

  test('full: nothing is remembered, and what is not there is not known', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    const used = openCache(`redis://127.0.0.1:${String(full.port)}`, patient)
    await waitFor('the cache', () => answers(used.cache))
    await expect(used.cache.look('code')).rejects.toBeInstanceOf(StoreError)
    await used.cache.forget('code')
    await used.cache.close()
    await full.close()
  })

  test('closed: calls fail', async () => {
    const used = await openReadyCache(url)
    await used.cache.close()
    await expect(used.cache.look('code')).rejects.toBeInstanceOf(StoreError)
  })
})

/** With the highest bit of one byte turned. */
function flipped(whole: Buffer, at: number): Buffer {
  const spoilt = Buffer.from(whole)
  spoilt.writeUInt8(whole.readUInt8(at) ^ 0x80, at)
  return spoilt
}

describe('what is in Redis', () => {
  test.each<[string, InvalidReason, (whole: Buffer) => Buffer]>([
    ['foreign text', 'format', () => Buffer.from('what is this')],
    ['a cut entry', 'length', (whole) => whole.subarray(0, whole.length / 2)],
    ['a flipped bit, no UTF-8 any more', 'checksum', (whole) => flipped(whole, whole.length - 3)],
    ["another code's entry", 'code', () => Buffer.from(encodeEntry('other', target))],
    ["version 1's target", 'version', () => Buffer.from(`1T ${target.longUrl}`)],
    ["version 1's negative entry", 'version', () => Buffer.from('1N')],
  ])('%s is dropped and counted, and its reader may fill the cache', async (_, reason, spoil) => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    await remember(used, code)
    const whole = await client.getBuffer(`curtail:link:1:${code}`)
    await client.set(`curtail:link:1:${code}`, spoil(whole ?? Buffer.alloc(0)))
    const permit = await permitFor(used, code)
    expect(await used.cache.look(code)).toEqual({ kind: 'unknown', permit: undefined })
    const { values } = await used.metrics.linkCacheInvalid.get()
    expect(values).toEqual([{ labels: { reason }, value: 1 }])
    expect(await used.cache.fill({ code, permit, target, nowMs: Date.now() })).toBe(true)
    expect(await used.cache.look(code)).toEqual({ kind: 'hit', target })
    client.disconnect()
    await used.cache.close()
  })

  test('of 50 who read an invalid entry at once one gets a lease, and nobody drops it', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    await client.set(`curtail:link:1:${code}`, 'what is this')
    const seen = await Promise.all(Array.from({ length: 50 }, () => used.cache.look(code)))
    const permits = seen.flatMap((one) => (one.kind === 'unknown' ? (one.permit ?? []) : ['?']))
    expect(permits).toHaveLength(1)
    const [permit = ''] = permits
    expect(await used.cache.fill({ code, permit, target, nowMs: Date.now() })).toBe(true)
    client.disconnect()
    await used.cache.close()
  })

  test('many invalid entries are one log line, and older ones none', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    for (const value of ['1N', '1T https://example.com/', ...Array.from('spoilt')]) {
      const code = newCode()
      await client.set(`curtail:link:1:${code}`, value)
      await permitFor(used, code)
    }
    expect(used.warned).toEqual([{ reason: 'format', entries: 1 }])
    client.disconnect()
    await used.cache.close()
  })

  test('a foreign list is not believed, until it is forgotten', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    await client.rpush(`curtail:link:1:${code}`, 'what', 'is', 'this')
    expect(await used.cache.look(code)).toEqual({ kind: 'unknown', permit: undefined })
    await used.cache.forget(code)
    expect(await remember(used, code)).toBe(true)
    client.disconnect()
    await used.cache.close()
  })

  test('no key lives for ever, and an entry is small', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    await client.flushall()
    await permitFor(used, 'a')
    await remember(used, 'b')
    const permit = await permitFor(used, 'c')
    await used.cache.fill({ code: 'c', permit, target: undefined, nowMs: Date.now() })
    const keys = await client.keys('*')
    expect(keys).toHaveLength(3)
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    expect(await client.get('curtail:link:1:b')).toBe(encodeEntry('b', target))
    expect(encodeEntry('b', target)).toHaveLength(target.longUrl.length + 17)
    client.disconnect()
    await used.cache.close()
  })

  test('the reads of one turn share a command, of so many keys at most', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    await remember(used, code)
    await client.config('RESETSTAT')
    const seen = await Promise.all(Array.from({ length: 300 }, () => used.cache.look(code)))
    expect(new Set(seen.map(({ kind }) => kind))).toEqual(new Set(['hit']))
    const stats = /cmdstat_mget:calls=(\d+)/.exec(await client.info('commandstats'))
    expect(Number(stats?.[1])).toBe(3)
    client.disconnect()
    await used.cache.close()
  })
})

test(
  'behind Sentinel the new master is used after a failover',
  async () => {
    const { master, sentinel, close } = await startSentinel()
    const used = await openReadyCache(
      `redis+sentinel://127.0.0.1:${String(sentinel.port)}/master`,
      patient,
    )
    expect(await remember(used, 'code')).toBe(true)
    await master.kill()
    await failureOf(used.cache.look('code'))
    await untilBack(used, FAILOVER_MS_MAX)
    await used.cache.forget('code')
    expect(await remember(used, 'code')).toBe(true)
    await used.cache.close()
    await close()
  },
  2 * FAILOVER_MS_MAX,
)

test(
  'over TLS, with a certificate of our own, a user and a password',
  async () => {
    const { cert, key, close } = await makeCertificate()
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert]
    const user = ['--user', 'links', 'on', '>secret:1', '~curtail:*', '+@all']
    const secure = await startRedis([...files, ...user, '--user', 'default', 'off'], {
      isTls: true,
    })
    const used = await openReadyCache(
      {
        REDIS_URL: `rediss://links:secret%3A1@127.0.0.1:${String(secure.port)}`,
        REDIS_TLS_CACERT: cert,
        REDIS_TLS_CLIENT_CERT: cert,
        REDIS_TLS_CLIENT_KEY: key,
      },
      patient,
    )
    expect(await remember(used, 'code')).toBe(true)
    await used.cache.close()
    await secure.close()
    await close()
  },
  TEST_MS_MAX,
)
