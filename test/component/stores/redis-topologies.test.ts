// The counters on a Redis Cluster, behind Sentinel, over TLS with passwords, on a Unix socket, and
// with a separate Redis for limits per second.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { parseConfig } from '../../../src/config/config.ts'
import { connectRedis } from '../../../src/stores/redis/connection.ts'
import { createRedisCounterStore } from '../../../src/stores/redis/counter-store.ts'
import { planRedis, redisSettings } from '../../../src/stores/redis/settings.ts'
import {
  clientOf,
  FAILOVER_MS_MAX,
  createCertificate,
  startCluster,
  startRedis,
  startSentinel,
} from '../../dependencies/redis.ts'
import { consumeOne, failureOf, newUpdate } from '../../kit/ratelimit/redis-use.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000

/** Opens the store of these settings like a role does; waits until it is connected. */
async function openFrom(env: Record<string, string>) {
  const { main, perSecond, keyPrefix } = planRedis(parseConfig(redisSettings, env))
  const watch = { onUp: () => undefined, onDown: () => undefined }
  const connection = connectRedis(main, watch)
  const second = perSecond === undefined ? undefined : connectRedis(perSecond, watch)
  await waitFor('Redis', () => connection.isUp() && (second?.isUp() ?? true))
  return createRedisCounterStore({ connection, perSecond: second, keyPrefix })
}

test(
  'the store sends a call to each slot of a Cluster; a denied call is refunded on the other slots',
  async () => {
    const nodes = await startCluster()
    const list = nodes.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')
    const store = await openFrom({ REDIS_TYPE: 'cluster', REDIS_URL: list, CACHE_KEY_PREFIX: 'p_' })
    await store.probe()
    const updates = Array.from({ length: 50 }, (_, at) => ({
      ...newUpdate('fixed_window', { key: `key ${String(at)}` }),
      hits: at % 10,
    }))
    const decisions = await store.consume(updates)
    const remaining = updates.map(({ hits }) => 10 - hits)
    expect(decisions.map((decision) => decision.remaining)).toEqual(remaining)

    const [free, full] = ['free', 'full'].map((name) =>
      newUpdate('token_bucket', { key: `{a}${name}` }),
    )
    if (free === undefined || full === undefined) throw new Error('no updates')
    await store.consume([{ ...full, hits: 10 }])
    expect((await store.consume([free, full]))[1]).toMatchObject({ admitted: false })
    expect(await consumeOne(store, { ...free, hits: 0 })).toMatchObject({ remaining: 10 })

    const others = ['b', 'c', 'd', 'e', 'f'].map((name) =>
      newUpdate('token_bucket', { key: `{${name}}other` }),
    )
    const denied = await store.consume([...others, full])
    expect(denied.map(({ remaining: left }) => left)).toEqual([10, 10, 10, 10, 10, 0])
    for (const other of others) {
      expect(await consumeOne(store, { ...other, hits: 0 })).toMatchObject({ remaining: 10 })
    }

    const stored = nodes.map(async ({ port }) => {
      const client = clientOf(port)
      const keys = await client.keys('*')
      client.disconnect()
      return keys
    })
    const keys = await Promise.all(stored)
    expect(keys.every((some) => some.length > 0)).toBe(true)
    expect(keys.flat().every((key) => key.startsWith('p_'))).toBe(true)
    store.close()
    for (const node of nodes) await node.close()
  },
  TEST_MS_MAX,
)

test(
  'the store uses the new master of Sentinel after a failover',
  async () => {
    const { master, sentinel, close } = await startSentinel()
    const url = `master,127.0.0.1:${String(sentinel.port)}`
    const store = await openFrom({ REDIS_TYPE: 'SENTINEL', REDIS_URL: url })
    const update = newUpdate()
    expect(await consumeOne(store, update)).toMatchObject({ remaining: 9 })
    await master.kill()
    await failureOf(store.consume([update]))
    const isCounted = () =>
      store.consume([update]).then(
        () => true,
        () => false,
      )
    await waitFor('a count on the new master', isCounted, FAILOVER_MS_MAX)
    store.close()
    await close()
  },
  2 * FAILOVER_MS_MAX,
)

test(
  'the store connects over TLS with a self-signed certificate, a user and a password',
  async () => {
    const { cert, key, close } = await createCertificate()
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert]
    const limiter = ['--user', 'limiter', 'on', '>secret:1', '~*', '+@all']
    const user = [...limiter, '--user', 'default', 'off']
    const server = await startRedis([...files, ...user], { isTls: true })
    const env = {
      REDIS_URL: `127.0.0.1:${String(server.port)}`,
      REDIS_TLS: 'true',
      REDIS_AUTH: 'limiter:secret:1',
      REDIS_TLS_CACERT: cert,
      REDIS_TLS_CLIENT_CERT: cert,
      REDIS_TLS_CLIENT_KEY: key,
    }
    const store = await openFrom(env)
    expect(await consumeOne(store, newUpdate())).toMatchObject({ remaining: 9 })
    store.close()

    const rejection = async (changed: Record<string, string>) => {
      const { main } = planRedis(parseConfig(redisSettings, { ...env, ...changed }))
      const failure = await new Promise<string>((resolve) => {
        const connection = connectRedis(main, {
          onUp: () => undefined,
          onDown(error, level) {
            connection.close()
            resolve(`${level}: ${error.message}`)
          },
        })
      })
      return failure
    }
    expect(await rejection({ REDIS_AUTH: 'limiter:wrong' })).toMatch(/^warn: WRONGPASS/)
    expect(await rejection({ REDIS_TLS_CACERT: '' })).toMatch(/^warn: self-signed/)
    const host = `localhost:${String(server.port)}`
    expect(await rejection({ REDIS_URL: host })).toContain("does not match certificate's altnames")
    const unchecked = { REDIS_URL: host, REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: 'true' }
    const lenient = await openFrom({ ...env, ...unchecked })
    await lenient.probe()
    lenient.close()
    await server.close()
    await close()
  },
  TEST_MS_MAX,
)

test(
  'the store counts limits per second in a separate Redis, here on a Unix socket',
  async () => {
    const dir = await mkdtemp(join(tmpdir(), 'curtail-socket-'))
    const socket = join(dir, 'redis.sock')
    const [main, second] = [await startRedis(), await startRedis(['--unixsocket', socket])]
    const store = await openFrom({
      REDIS_URL: `redis://127.0.0.1:${String(main.port)}/3`,
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: socket,
    })
    const quick = { ...newUpdate('fixed_window'), isPerSecond: true }
    const updates = [newUpdate(), { ...quick, hits: 4 }, { ...newUpdate(), hits: 2 }]
    const decisions = await store.consume(updates)
    expect(decisions.map(({ remaining }) => remaining)).toEqual([9, 6, 8])
    const clients = [clientOf(main.port, { db: 3 }), clientOf(second.port)]
    const sizes = await Promise.all(clients.map((client) => client.dbsize()))
    expect(sizes).toEqual([2, 1])

    await second.kill()
    await failureOf(store.consume([quick]))
    expect(await consumeOne(store, newUpdate())).toMatchObject({ admitted: true })
    await expect(store.probe()).rejects.toThrow('Redis did not respond to a PING')
    for (const client of clients) client.disconnect()
    store.close()
    await main.close()
    await second.close()
    await rm(dir, { recursive: true })
  },
  TEST_MS_MAX,
)
