// What the link cache finds in a real Redis: spoilt, foreign and older entries are dropped and
// counted, and their readers fill the cache from the store.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { encodeEntry, type InvalidReason } from '../../src/stores/redis/link-cache-entry.ts'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import {
  openReadyCache,
  PATIENT_MS_MAX,
  leaseFor,
  newCode,
  store,
  target,
} from './link-cache-use.ts'

const patient = { commandMsMax: PATIENT_MS_MAX }

let server: RedisServer
let url: string
beforeAll(async () => {
  server = await startRedis()
  url = `redis://127.0.0.1:${String(server.port)}`
}, 600_000)
afterAll(() => server.close())

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
    await store(used, code)
    const whole = await client.getBuffer(`curtail:link:1:${code}`)
    await client.set(`curtail:link:1:${code}`, spoil(whole ?? Buffer.alloc(0)))
    const lease = await leaseFor(used, code)
    expect(await used.cache.look(code)).toEqual({ kind: 'unknown', lease: undefined })
    const { values } = await used.metrics.linkCacheInvalidEntries.get()
    expect(values).toEqual([{ labels: { reason }, value: 1 }])
    expect(await used.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(true)
    expect(await used.cache.look(code)).toEqual({ kind: 'hit', target })
    client.disconnect()
    await used.cache.close()
  })

  test('of 50 who read an invalid entry at once one gets a lease, and it stays', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    await client.set(`curtail:link:1:${code}`, 'what is this')
    const seen = await Promise.all(Array.from({ length: 50 }, () => used.cache.look(code)))
    const leases = seen.flatMap((one) => (one.kind === 'unknown' ? (one.lease ?? []) : ['?']))
    expect(leases).toHaveLength(1)
    const [lease = ''] = leases
    expect(await used.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(true)
    client.disconnect()
    await used.cache.close()
  })

  test('many invalid entries are one log line, and older ones none', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    for (const value of ['1N', '1T https://example.com/', ...Array.from('spoilt')]) {
      const code = newCode()
      await client.set(`curtail:link:1:${code}`, value)
      await leaseFor(used, code)
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
    expect(await used.cache.look(code)).toEqual({ kind: 'unknown', lease: undefined })
    await used.cache.forget(code)
    expect(await store(used, code)).toBe(true)
    client.disconnect()
    await used.cache.close()
  })

  test('no key lives for ever, and an entry is small', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    await client.flushall()
    await leaseFor(used, 'a')
    await store(used, 'b')
    const lease = await leaseFor(used, 'c')
    await used.cache.fill({ code: 'c', lease, target: undefined, nowMs: Date.now() })
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
    await store(used, code)
    await client.config('RESETSTAT')
    const seen = await Promise.all(Array.from({ length: 300 }, () => used.cache.look(code)))
    expect(new Set(seen.map(({ kind }) => kind))).toEqual(new Set(['hit']))
    const stats = /cmdstat_mget:calls=(\d+)/.exec(await client.info('commandstats'))
    expect(Number(stats?.[1])).toBe(3)
    client.disconnect()
    await used.cache.close()
  })
})
