// The link cache while Redis is unavailable, hangs, is killed, loses its data or is a replica:
// calls fail with StoreError within their deadline, and succeed once Redis has recovered.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { StoreError } from '../../../src/resilience/store-error.ts'
import {
  COMMAND_MS_MAX,
  CALLS_IN_FLIGHT_MAX,
} from '../../../src/stores/redis/link-cache-commands.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import {
  clientOf,
  FAILOVER_MS_MAX,
  createCertificate,
  type RedisServer,
  startRedis,
  startSentinel,
} from '../../dependencies/redis.ts'
import {
  isAvailable,
  openCache,
  openReadyCache,
  TOLERANT_MS_MAX,
  type OpenedCache,
  leaseFor,
  newCode,
  store,
  target,
} from '../../kit/links/link-cache-use.ts'
import { failureOf } from '../../kit/ratelimit/redis-use.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const tolerant = { commandMsMax: TOLERANT_MS_MAX }

let server: RedisServer
let url: string
beforeAll(async () => {
  server = await startRedis()
  url = `redis://127.0.0.1:${String(server.port)}`
}, 600_000)
afterAll(() => server.close())

async function isUnavailable({ metrics }: OpenedCache): Promise<boolean> {
  return (await metrics.linkCacheUnavailable.get()).values[0]?.value === 1
}

/** Reads until the circuit breaker of the cache opens. */
async function waitForUnavailable(opened: OpenedCache): Promise<void> {
  await waitFor('the circuit breaker', async () => {
    await failureOf(opened.cache.lookUp(newCode()))
    return isUnavailable(opened)
  })
}

async function waitForRecovery(opened: OpenedCache, msMax?: number): Promise<void> {
  await waitFor(
    'the recovery of the cache',
    async () => !(await isUnavailable(opened)) && isAvailable(opened.cache),
    msMax,
  )
}

async function failuresOf({ metrics }: OpenedCache): Promise<Record<string, number>> {
  const { values } = await metrics.linkCacheFailures.get()
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.reason), value]))
}

describe('calls', () => {
  test('fail immediately if Redis is down at the start, and succeed once it is up', async () => {
    const port = await freePort()
    const opened = openCache(`redis://127.0.0.1:${String(port)}`)
    const { error, tookMs } = await failureOf(opened.cache.lookUp('code'))
    expect(error.outcome).toBe('not-done')
    expect(tookMs).toBeLessThan(5 * COMMAND_MS_MAX)
    expect((await failureOf(opened.cache.invalidate('code'))).error.outcome).toBe('unknown')
    const started = await startRedis([], { port })
    await waitForRecovery(opened)
    expect(await store(opened, 'code')).toBe(true)
    expect(opened.states).toEqual(['down', 'up'])
    await opened.cache.close()
    await started.close()
  })

  test('fail within their deadline while Redis hangs, and then immediately', async () => {
    const opened = await openReadyCache(url)
    const code = newCode()
    await store(opened, code)
    server.stop()
    try {
      const calls = [opened.cache.lookUp(code), opened.cache.invalidate(newCode())]
      for (const call of calls) {
        expect((await failureOf(call)).tookMs).toBeLessThan(5 * COMMAND_MS_MAX)
      }
      await waitForUnavailable(opened)
      const before = await failuresOf(opened)
      await failureOf(opened.cache.lookUp(code))
      expect(await failuresOf(opened)).toEqual({
        ...before,
        unavailable: (before['unavailable'] ?? 0) + 1,
      })
      expect(before['timeout']).toBeGreaterThanOrEqual(5)
    } finally {
      server.resume()
    }
    await waitForRecovery(opened)
    expect(await opened.cache.lookUp(code)).toEqual({ kind: 'hit', target })
    await opened.cache.close()
  })

  test('in flight are bounded while Redis hangs', async () => {
    const opened = await openReadyCache(url)
    server.stop()
    try {
      const calls = Array.from({ length: CALLS_IN_FLIGHT_MAX }, () =>
        opened.cache.invalidate('code'),
      )
      const settled = Promise.allSettled(calls)
      const { error } = await failureOf(opened.cache.invalidate('code'))
      expect(error.message).toBe(
        `${String(CALLS_IN_FLIGHT_MAX)} calls are already waiting for the link cache`,
      )
      expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    } finally {
      server.resume()
    }
    await waitForRecovery(opened)
    await opened.cache.close()
  })

  test('send the script to a Redis that was restarted empty, which has no leases', async () => {
    const opened = await openReadyCache(url, tolerant)
    const code = newCode()
    expect(await store(opened, newCode())).toBe(true)
    const lease = await leaseFor(opened, code)
    await server.kill()
    await failureOf(opened.cache.lookUp(code))
    await server.restart()
    await waitForRecovery(opened)
    expect(await opened.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(false)
    expect(await store(opened, newCode())).toBe(true)
    await opened.cache.close()
  })

  test('that fill an entry are rejected if Redis was flushed before', async () => {
    const opened = await openReadyCache(url, tolerant)
    const client = clientOf(server.port)
    const code = newCode()
    const lease = await leaseFor(opened, code)
    await client.flushall()
    await client.script('FLUSH')
    expect(await opened.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(false)
    expect(await store(opened, code)).toBe(true)
    client.disconnect()
    await opened.cache.close()
  })

  test('open the circuit breaker if Redis is a replica, until it is a master', async () => {
    const replica = await startRedis()
    const opened = await openReadyCache(`redis://127.0.0.1:${String(replica.port)}`)
    const client = clientOf(replica.port)
    await client.replicaof('127.0.0.1', await freePort())
    await expect(opened.cache.invalidate('code')).rejects.toBeInstanceOf(StoreError)
    await waitFor('the circuit breaker', async () => {
      await failureOf(opened.cache.invalidate('code'))
      return isUnavailable(opened)
    })
    const rejected = async () =>
      Number(/cmdstat_del:.*rejected_calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
    const before = await rejected()
    await waitFor('probes', async () => (await rejected()) > before + 2)
    expect(await isUnavailable(opened)).toBe(true)
    await client.replicaof('NO', 'ONE')
    await waitForRecovery(opened)
    client.disconnect()
    await opened.cache.close()
    await replica.close()
  })

  test('cache nothing if Redis is full, and reads fail with StoreError', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    const opened = openCache(`redis://127.0.0.1:${String(full.port)}`, tolerant)
    await waitFor('the cache', () => isAvailable(opened.cache))
    await expect(opened.cache.lookUp('code')).rejects.toBeInstanceOf(StoreError)
    await opened.cache.invalidate('code')
    await opened.cache.close()
    await full.close()
  })

  test('fail after the cache is closed', async () => {
    const opened = await openReadyCache(url)
    await opened.cache.close()
    await expect(opened.cache.lookUp('code')).rejects.toBeInstanceOf(StoreError)
  })
})

test(
  'the cache uses the new master of Sentinel after a failover',
  async () => {
    const { master, sentinel, close } = await startSentinel()
    const opened = await openReadyCache(
      `redis+sentinel://127.0.0.1:${String(sentinel.port)}/master`,
      tolerant,
    )
    expect(await store(opened, 'code')).toBe(true)
    await master.kill()
    await failureOf(opened.cache.lookUp('code'))
    await waitForRecovery(opened, FAILOVER_MS_MAX)
    // Sentinel closes the clients' connections to a replica that it promotes.
    const written = async () => {
      await opened.cache.invalidate('code')
      return store(opened, 'code')
    }
    await waitFor('a write to the new master', () =>
      written().catch((error: unknown) => {
        if (error instanceof StoreError) return false
        throw error
      }),
    )
    await opened.cache.close()
    await close()
  },
  2 * FAILOVER_MS_MAX,
)

test(
  'the cache connects over TLS with a self-signed certificate, a user and a password',
  async () => {
    const { cert, key, close } = await createCertificate()
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert]
    const user = ['--user', 'links', 'on', '>secret:1', '~curtail:*', '+@all']
    const secure = await startRedis([...files, ...user, '--user', 'default', 'off'], {
      isTls: true,
    })
    const opened = await openReadyCache(
      {
        REDIS_URL: `rediss://links:secret%3A1@127.0.0.1:${String(secure.port)}`,
        REDIS_TLS_CACERT: cert,
        REDIS_TLS_CLIENT_CERT: cert,
        REDIS_TLS_CLIENT_KEY: key,
      },
      tolerant,
    )
    expect(await store(opened, 'code')).toBe(true)
    await opened.cache.close()
    await secure.close()
    await close()
  },
  TEST_MS_MAX,
)
