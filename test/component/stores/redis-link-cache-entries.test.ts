// Entries of the link cache in a real Redis: corrupt, foreign and older entries are dropped and
// counted, and their readers fill the cache from the store.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { encodeEntry, type InvalidReason } from '../../../src/stores/redis/link-cache-entry.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  openReadyCache,
  TOLERANT_MS_MAX,
  leaseFor,
  newCode,
  store,
  target,
} from '../../kit/links/link-cache-use.ts'

const tolerant = { commandMsMax: TOLERANT_MS_MAX }

let server: RedisServer
let url: string
beforeAll(async () => {
  server = await startRedis()
  url = `redis://127.0.0.1:${String(server.port)}`
}, 600_000)
afterAll(() => server.close())

/** A copy with the highest bit of one byte flipped. */
function flipped(whole: Buffer, at: number): Buffer {
  const copy = Buffer.from(whole)
  copy.writeUInt8(whole.readUInt8(at) ^ 0x80, at)
  return copy
}

describe('an entry in Redis', () => {
  test.each<[string, InvalidReason, (whole: Buffer) => Buffer]>([
    ['a foreign string', 'format', () => Buffer.from('what is this')],
    ['a truncated entry', 'length', (whole) => whole.subarray(0, whole.length / 2)],
    ['a flipped bit, invalid UTF-8', 'checksum', (whole) => flipped(whole, whole.length - 3)],
    ["another code's entry", 'code', () => Buffer.from(encodeEntry('other', target))],
    ["version 1's target", 'version', () => Buffer.from(`1T ${target.longUrl}`)],
    ["version 1's negative entry", 'version', () => Buffer.from('1N')],
  ])(
    'that is %s is dropped and counted, and its reader may fill the cache',
    async (_, reason, corrupt) => {
      const opened = await openReadyCache(url, tolerant)
      const client = clientOf(server.port)
      const code = newCode()
      await store(opened, code)
      const whole = await client.getBuffer(`curtail:link:1:${code}`)
      await client.set(`curtail:link:1:${code}`, corrupt(whole ?? Buffer.alloc(0)))
      const lease = await leaseFor(opened, code)
      expect(await opened.cache.lookUp(code)).toEqual({ kind: 'unknown', lease: undefined })
      const { values } = await opened.metrics.linkCacheInvalidEntries.get()
      expect(values).toEqual([{ labels: { reason }, value: 1 }])
      expect(await opened.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(true)
      expect(await opened.cache.lookUp(code)).toEqual({ kind: 'hit', target })
      client.disconnect()
      await opened.cache.close()
    },
  )

  test('that is invalid is refilled by one of 50 concurrent readers', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    const code = newCode()
    await client.set(`curtail:link:1:${code}`, 'what is this')
    const looks = await Promise.all(Array.from({ length: 50 }, () => opened.cache.lookUp(code)))
    const leases = looks.flatMap((one) => (one.kind === 'unknown' ? (one.lease ?? []) : ['?']))
    expect(leases).toHaveLength(1)
    const [lease = ''] = leases
    expect(await opened.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(true)
    client.disconnect()
    await opened.cache.close()
  })

  test('that is invalid is logged, once for many, and not if its version is older', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    for (const value of ['1N', '1T https://example.com/', ...Array.from('broken')]) {
      const code = newCode()
      await client.set(`curtail:link:1:${code}`, value)
      await leaseFor(opened, code)
    }
    expect(opened.warnings).toEqual([{ reason: 'format', entries: 1 }])
    client.disconnect()
    await opened.cache.close()
  })

  test('that is a foreign list is a miss without a lease until it is invalidated', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    const code = newCode()
    await client.rpush(`curtail:link:1:${code}`, 'what', 'is', 'this')
    expect(await opened.cache.lookUp(code)).toEqual({ kind: 'unknown', lease: undefined })
    await opened.cache.invalidate(code)
    expect(await store(opened, code)).toBe(true)
    client.disconnect()
    await opened.cache.close()
  })

  test('expires and is small', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    await client.flushall()
    await leaseFor(opened, 'a')
    await store(opened, 'b')
    const lease = await leaseFor(opened, 'c')
    await opened.cache.fill({ code: 'c', lease, target: undefined, nowMs: Date.now() })
    const keys = await client.keys('*')
    expect(keys).toHaveLength(3)
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    expect(await client.get('curtail:link:1:b')).toBe(encodeEntry('b', target))
    expect(encodeEntry('b', target)).toHaveLength(target.longUrl.length + 17)
    client.disconnect()
    await opened.cache.close()
  })

  test('is read by a command that several reads of one event-loop turn share', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    const code = newCode()
    await store(opened, code)
    await client.config('RESETSTAT')
    const looks = await Promise.all(Array.from({ length: 300 }, () => opened.cache.lookUp(code)))
    expect(new Set(looks.map(({ kind }) => kind))).toEqual(new Set(['hit']))
    const stats = /cmdstat_mget:calls=(\d+)/.exec(await client.info('commandstats'))
    expect(Number(stats?.[1])).toBe(3)
    client.disconnect()
    await opened.cache.close()
  })
})
