// Counters while Redis is unavailable, hangs, is killed, loses its data, is full or has foreign
// keys: calls are decided or fail with StoreError within their deadline, and succeed once Redis has
// recovered.
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { algorithms } from '../../../src/limits/algorithms.ts'
import { CALLS_IN_FLIGHT_MAX } from '../../../src/stores/redis/batches.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  consumeOne,
  failureOf,
  newUpdate,
  timeToRecovery,
  openReadyStore,
  createStore,
} from '../../kit/ratelimit/redis-use.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { watchPauses } from '../../kit/watch-pauses.ts'

const TIMEOUT_MS = 300
/** Five times the recovery time of one second. */
const RECOVERY_MS_MAX = 5000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 600_000)
afterAll(() => server.close())

describe('calls', () => {
  test('fail immediately if Redis is down at the start, and succeed once it is up', async () => {
    const port = await freePort()
    const { store, events } = createStore(port)
    const pauses = watchPauses()
    const { error, tookMs } = await failureOf(store.consume([newUpdate()]))
    pauses.stop()
    expect([error.message, error.outcome]).toEqual(['Redis is not connected', 'not-done'])
    expect(tookMs).toBeLessThan(TIMEOUT_MS + pauses.longestMs())
    await expect(store.probe()).rejects.toThrow('Redis did not respond to a PING')
    await waitFor('the down event', () => events.includes('down: info'))
    const started = await startRedis([], { port })
    expect(await timeToRecovery(store)).toBeLessThan(RECOVERY_MS_MAX)
    await store.probe()
    await started.close()
    await waitFor('the down event', () => events.length === 3)
    expect(events).toEqual(['down: info', 'up', 'down: warn'])
    store.close()
  })

  test('fail within their deadline while Redis hangs, and succeed once it resumes', async () => {
    const { store } = await openReadyStore(server.port, { timeoutMs: TIMEOUT_MS })
    server.stop()
    const { error, tookMs } = await failureOf(store.consume([newUpdate()]))
    expect(error.message).toMatch(/^Redis did not/)
    expect(tookMs).toBeLessThan(5 * TIMEOUT_MS)
    await expect(store.probe()).rejects.toThrow('Redis did not respond to a PING')
    server.resume()
    expect(await timeToRecovery(store)).toBeLessThan(RECOVERY_MS_MAX)
    store.close()
  })

  test('in flight are bounded while Redis hangs', async () => {
    const { store } = await openReadyStore(server.port, { timeoutMs: 1000 })
    server.stop()
    const update = newUpdate()
    const calls = Array.from({ length: CALLS_IN_FLIGHT_MAX }, () => store.consume([update]))
    const settled = Promise.allSettled(calls)
    const { error } = await failureOf(store.consume([update]))
    expect(error.message).toBe(`${String(CALLS_IN_FLIGHT_MAX)} calls are already waiting for Redis`)
    expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    server.resume()
    await timeToRecovery(store)
    store.close()
  })

  test('send the script to a Redis that was killed and restarted empty', async () => {
    const { store } = await openReadyStore(server.port)
    await consumeOne(store, newUpdate())
    await server.kill()
    await failureOf(store.consume([newUpdate()]))
    await server.restart()
    expect(await timeToRecovery(store)).toBeLessThan(RECOVERY_MS_MAX)
    store.close()
  })

  test('send the script after it was flushed, and none fails', async () => {
    const { store } = await openReadyStore(server.port)
    const client = clientOf(server.port)
    const update = newUpdate()
    await consumeOne(store, update)
    await client.script('FLUSH')
    const decisions = await Promise.all([1, 2, 3].map(() => consumeOne(store, update)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual([8, 7, 6])
    client.disconnect()
    store.close()
  })

  test('fail after the store is closed', async () => {
    const { store } = await openReadyStore(server.port)
    store.close()
    expect((await failureOf(store.consume([newUpdate()]))).error.outcome).toBe('not-done')
  })

  test('fail while Redis is out of memory, except for reads without a hit', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    const { store } = await openReadyStore(full.port)
    const update = newUpdate()
    const { error } = await failureOf(store.consume([update]))
    expect(error.message).toContain('OOM')
    await expect(store.probe()).rejects.toThrow('OOM') // though it replies to PING
    expect(await consumeOne(store, { ...update, hits: 0 })).toMatchObject({ remaining: 10 })
    store.close()
    await full.close()
  })

  test('fail while Redis is a replica, and succeed once it is a master', async () => {
    const client = clientOf(server.port)
    const { store, events } = await openReadyStore(server.port)
    await client.replicaof('127.0.0.1', await freePort())
    const { error } = await failureOf(store.consume([newUpdate()]))
    expect(error.message).toContain('READONLY')
    await waitFor('a new connection', () => events.includes('down: warn'))
    await client.replicaof('NO', 'ONE')
    expect(await timeToRecovery(store)).toBeLessThan(RECOVERY_MS_MAX)
    client.disconnect()
    store.close()
  })
})

describe('the store', () => {
  const foreign = ['string', 'numbers', 'long', 'list', 'hash']
  const cases = algorithms.flatMap(({ name }) => foreign.map((kind) => [name, kind] as const))

  test.each(cases)('counts from zero: %s with a foreign %s under its key', async (name, kind) => {
    const { store } = await openReadyStore(server.port)
    const client = clientOf(server.port)
    const update = newUpdate(name)
    const key = `c:${update.key}`
    if (kind === 'string') await client.set(key, 'what is this')
    if (kind === 'numbers') await client.set(key, '-1 1e400')
    if (kind === 'long') await client.set(key, `${'9'.repeat(5000)} 1`)
    if (kind === 'list') await client.rpush(key, 'what', 'is', 'this')
    if (kind === 'hash') await client.hset(key, 'what', 'is this')
    const remaining = name === 'leaky_bucket' ? 0 : 9
    expect(await consumeOne(store, update)).toMatchObject({ admitted: true, remaining })
    expect(await client.pttl(key)).toBeGreaterThan(0)
    if (remaining > 0) expect(await consumeOne(store, update)).toMatchObject({ remaining: 8 })
    client.disconnect()
    store.close()
  })

  test('sets an expiry on every key, and creates none for a read without a hit', async () => {
    const client = clientOf(server.port)
    await client.flushall()
    const { store } = await openReadyStore(server.port)
    const updates = algorithms.map(({ name }) => newUpdate(name))
    await store.consume(updates.map((update) => ({ ...update, hits: 0 })))
    expect(await client.dbsize()).toBe(0)
    for (const hits of [1, 3, -1, 2, 1, 5]) {
      await Promise.all(updates.map((update) => store.consume([{ ...update, hits }])))
      await store.consume(updates)
    }
    const keys = await client.keys('*')
    expect(keys).toHaveLength(algorithms.length)
    for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
    await store.consume(updates.map((update) => ({ ...update, hits: -100 })))
    expect(await client.keys('*')).toEqual([expect.any(String), expect.any(String)])
    client.disconnect()
    store.close()
  })

  test('combines the calls of one turn in a script call; replicas share the count', async () => {
    const client = clientOf(server.port)
    await client.config('RESETSTAT')
    const stores = await Promise.all([1, 2, 3].map(() => openReadyStore(server.port)))
    const update = newUpdate('sliding_window_counter')
    const calls = stores.flatMap(({ store }) =>
      Array.from({ length: 40 }, () => consumeOne(store, update)),
    )
    const admitted = (await Promise.all(calls)).filter((decision) => decision.admitted)
    expect(admitted).toHaveLength(10)
    const stats = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))
    expect(Number(stats?.[1])).toBe(3)
    for (const { store } of stores) store.close()
    client.disconnect()
  })
})

test.each(algorithms.map(({ name }) => name))(
  '%s uses the clock of Redis, regardless of the clock of a replica',
  async (name) => {
    const { store } = await openReadyStore(server.port)
    const update = newUpdate(name)
    for (let hit = 0; hit < 10; hit++) await consumeOne(store, update)
    const aheadMs = Date.now() + 24 * 3_600_000
    const clock = jest.spyOn(Date, 'now').mockReturnValue(aheadMs)
    try {
      expect(await consumeOne(store, update)).toMatchObject({ admitted: false })
    } finally {
      clock.mockRestore()
      store.close()
    }
  },
)
