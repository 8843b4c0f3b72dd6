// Counters in Redis while Redis is absent, hangs, dies, forgets, is full or holds what is not ours:
// a call fails with StoreError in its time or is decided, and Redis is used again when it is back.
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { algorithms } from '../../src/limits/algorithms.ts'
import { CALLS_IN_FLIGHT_MAX } from '../../src/stores/redis/batches.ts'
import { freePort } from '../parts/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import {
  chargeOne,
  failureOf,
  newCharge,
  timeToCharge,
  useReadyStore,
  useStore,
} from './redis-use.ts'
import { waitFor } from './wait-for.ts'
import { watchPauses } from './watch-pauses.ts'

const TIMEOUT_MS = 300
/** What is promised within a second is given five in a test. */
const RETURN_MS_MAX = 5000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 600_000)
afterAll(() => server.close())

describe('Redis away', () => {
  test('absent at the start: calls fail at once; it is used as soon as it is there', async () => {
    const port = await freePort()
    const { store, told } = useStore(port)
    const pauses = watchPauses()
    const { error, tookMs } = await failureOf(store.charge([newCharge()]))
    pauses.stop()
    expect([error.message, error.outcome]).toEqual(['Redis is not connected', 'not-done'])
    expect(tookMs).toBeLessThan(TIMEOUT_MS + pauses.longestMs())
    await expect(store.probe()).rejects.toThrow('Redis did not respond to a PING')
    await waitFor('word of it', () => told.includes('down'))
    const late = await startRedis([], { port })
    expect(await timeToCharge(store)).toBeLessThan(RETURN_MS_MAX)
    await store.probe()
    expect(told).toEqual(['down', 'up'])
    store.close()
    await late.close()
  })

  test('hung: calls fail within their bound; it is used as soon as it goes on', async () => {
    const { store } = await useReadyStore(server.port, { timeoutMs: TIMEOUT_MS })
    server.stop()
    const { error, tookMs } = await failureOf(store.charge([newCharge()]))
    expect(error.message).toMatch(/^Redis did not/)
    expect(tookMs).toBeLessThan(5 * TIMEOUT_MS)
    await expect(store.probe()).rejects.toThrow('Redis did not respond to a PING')
    server.resume()
    expect(await timeToCharge(store)).toBeLessThan(RETURN_MS_MAX)
    store.close()
  })

  test('hung: no more calls wait than are allowed', async () => {
    const { store } = await useReadyStore(server.port, { timeoutMs: 1000 })
    server.stop()
    const charge = newCharge()
    const calls = Array.from({ length: CALLS_IN_FLIGHT_MAX }, () => store.charge([charge]))
    const settled = Promise.allSettled(calls)
    const { error } = await failureOf(store.charge([charge]))
    expect(error.message).toBe(`${String(CALLS_IN_FLIGHT_MAX)} calls wait for Redis already`)
    expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    server.resume()
    await timeToCharge(store)
    store.close()
  })

  test('killed and restarted empty: the script is sent anew', async () => {
    const { store } = await useReadyStore(server.port)
    await chargeOne(store, newCharge())
    await server.kill()
    await failureOf(store.charge([newCharge()]))
    await server.restart()
    expect(await timeToCharge(store)).toBeLessThan(RETURN_MS_MAX)
    store.close()
  })

  test('a script that was forgotten is sent anew, to no call’s harm', async () => {
    const { store } = await useReadyStore(server.port)
    const client = clientOf(server.port)
    const charge = newCharge()
    await chargeOne(store, charge)
    await client.script('FLUSH')
    const decisions = await Promise.all([1, 2, 3].map(() => chargeOne(store, charge)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual([8, 7, 6])
    client.disconnect()
    store.close()
  })

  test('closed: calls fail', async () => {
    const { store } = await useReadyStore(server.port)
    store.close()
    expect((await failureOf(store.charge([newCharge()]))).error.outcome).toBe('not-done')
  })
})

describe('Redis answering errors', () => {
  test('out of memory: calls fail, looks do not', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    const { store } = await useReadyStore(full.port)
    const charge = newCharge()
    const { error } = await failureOf(store.charge([charge]))
    expect(error.message).toContain('OOM')
    await expect(store.probe()).rejects.toThrow('OOM') // though it answers a PING
    expect(await chargeOne(store, { ...charge, cost: 0 })).toMatchObject({ remaining: 10 })
    store.close()
    await full.close()
  })

  test('become a replica: calls fail; it is used again once it is a master', async () => {
    const client = clientOf(server.port)
    const { store, told } = await useReadyStore(server.port)
    await client.replicaof('127.0.0.1', await freePort())
    const { error } = await failureOf(store.charge([newCharge()]))
    expect(error.message).toContain('READONLY')
    await waitFor('a new connection', () => told.includes('down'))
    await client.replicaof('NO', 'ONE')
    expect(await timeToCharge(store)).toBeLessThan(RETURN_MS_MAX)
    client.disconnect()
    store.close()
  })
})

describe('keys', () => {
  const foreign = ['string', 'numbers', 'long', 'list', 'hash']
  const cases = algorithms.flatMap(({ name }) => foreign.map((kind) => [name, kind] as const))

  test.each(cases)('%s: a foreign %s under its key counts as nothing', async (name, kind) => {
    const { store } = await useReadyStore(server.port)
    const client = clientOf(server.port)
    const charge = newCharge(name)
    const key = `c:${charge.key}`
    if (kind === 'string') await client.set(key, 'what is this')
    if (kind === 'numbers') await client.set(key, '-1 1e400')
    if (kind === 'long') await client.set(key, `${'9'.repeat(5000)} 1`)
    if (kind === 'list') await client.rpush(key, 'what', 'is', 'this')
    if (kind === 'hash') await client.hset(key, 'what', 'is this')
    const remaining = name === 'leaky_bucket' ? 0 : 9
    expect(await chargeOne(store, charge)).toMatchObject({ admitted: true, remaining })
    expect(await client.pttl(key)).toBeGreaterThan(0)
    if (remaining > 0) expect(await chargeOne(store, charge)).toMatchObject({ remaining: 8 })
    client.disconnect()
    store.close()
  })

  test('no key lives for ever, and none that nobody uses is made', async () => {
    const client = clientOf(server.port)
    await client.flushall()
    const { store } = await useReadyStore(server.port)
    const charges = algorithms.map(({ name }) => newCharge(name))
    await store.charge(charges.map((charge) => ({ ...charge, cost: 0 })))
    expect(await client.dbsize()).toBe(0)
    for (const cost of [1, 3, -1, 2, 1, 5]) {
      await Promise.all(charges.map((charge) => store.charge([{ ...charge, cost }])))
      await store.charge(charges)
    }
    const keys = await client.keys('*')
    expect(keys).toHaveLength(algorithms.length)
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    await store.charge(charges.map((charge) => ({ ...charge, cost: -100 })))
    expect(await client.keys('*')).toEqual([expect.any(String), expect.any(String)])
    client.disconnect()
    store.close()
  })

  test('the calls of one turn share a script; three replicas share the count', async () => {
    const client = clientOf(server.port)
    await client.config('RESETSTAT')
    const used = await Promise.all([1, 2, 3].map(() => useReadyStore(server.port)))
    const charge = newCharge('sliding_window_counter')
    const calls = used.flatMap(({ store }) =>
      Array.from({ length: 40 }, () => chargeOne(store, charge)),
    )
    const admitted = (await Promise.all(calls)).filter((decision) => decision.admitted)
    expect(admitted).toHaveLength(10)
    const stats = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))
    expect(Number(stats?.[1])).toBe(3)
    for (const { store } of used) store.close()
    client.disconnect()
  })
})

test.each(algorithms.map(({ name }) => name))(
  '%s: the clock is Redis’s, whatever the clock of a replica says',
  async (name) => {
    const { store } = await useReadyStore(server.port)
    const charge = newCharge(name)
    for (let hit = 0; hit < 10; hit++) await chargeOne(store, charge)
    const aheadMs = Date.now() + 24 * 3_600_000
    const clock = jest.spyOn(Date, 'now').mockReturnValue(aheadMs)
    try {
      expect(await chargeOne(store, charge)).toMatchObject({ admitted: false })
    } finally {
      clock.mockRestore()
      store.close()
    }
  },
)
