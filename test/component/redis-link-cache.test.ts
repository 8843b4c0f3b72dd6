// The link cache on a Redis that is absent, hangs, dies, forgets or is a replica: a call fails with
// StoreError in its time, and Redis is used again when it is back.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { StoreError } from '../../src/resilience/store-error.ts'
import {
  COMMAND_MS_MAX,
  COMMANDS_IN_FLIGHT_MAX,
} from '../../src/stores/redis/link-cache-commands.ts'
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
  leaseFor,
  newCode,
  store,
  target,
} from './link-cache-use.ts'
import { failureOf } from './redis-use.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 60_000
const patient = { commandMsMax: PATIENT_MS_MAX }

let server: RedisServer
let url: string
beforeAll(async () => {
  server = await startRedis()
  url = `redis://127.0.0.1:${String(server.port)}`
}, 600_000)
afterAll(() => server.close())

async function isAway({ metrics }: UsedCache): Promise<boolean> {
  return (await metrics.linkCacheUnavailable.get()).values[0]?.value === 1
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
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.reason), value]))
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
    expect(await store(used, 'code')).toBe(true)
    expect(used.told).toEqual(['down', 'up'])
    await used.cache.close()
    await late.close()
  })

  test('hung: calls end in their time, then are not made, until it goes on', async () => {
    const used = await openReadyCache(url)
    const code = newCode()
    await store(used, code)
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
      const calls = Array.from({ length: COMMANDS_IN_FLIGHT_MAX }, () => used.cache.forget('code'))
      const settled = Promise.allSettled(calls)
      const { error } = await failureOf(used.cache.forget('code'))
      expect(error.message).toBe(
        `${String(COMMANDS_IN_FLIGHT_MAX)} commands wait for the link cache already`,
      )
      expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    } finally {
      server.resume()
    }
    await untilBack(used)
    await used.cache.close()
  })

  test('killed and restarted empty: leases are gone, the script is sent anew', async () => {
    const used = await openReadyCache(url, patient)
    const code = newCode()
    expect(await store(used, newCode())).toBe(true)
    const lease = await leaseFor(used, code)
    await server.kill()
    await failureOf(used.cache.look(code))
    await server.restart()
    await untilBack(used)
    expect(await used.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(false)
    expect(await store(used, newCode())).toBe(true)
    await used.cache.close()
  })

  test('flushed while an entry is on its way: it is refused', async () => {
    const used = await openReadyCache(url, patient)
    const client = clientOf(server.port)
    const code = newCode()
    const lease = await leaseFor(used, code)
    await client.flushall()
    await client.script('FLUSH')
    expect(await used.cache.fill({ code, lease, target, nowMs: Date.now() })).toBe(false)
    expect(await store(used, code)).toBe(true)
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

test(
  'behind Sentinel the new master is used after a failover',
  async () => {
    const { master, sentinel, close } = await startSentinel()
    const used = await openReadyCache(
      `redis+sentinel://127.0.0.1:${String(sentinel.port)}/master`,
      patient,
    )
    expect(await store(used, 'code')).toBe(true)
    await master.kill()
    await failureOf(used.cache.look('code'))
    await untilBack(used, FAILOVER_MS_MAX)
    await used.cache.forget('code')
    expect(await store(used, 'code')).toBe(true)
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
    expect(await store(used, 'code')).toBe(true)
    await used.cache.close()
    await secure.close()
    await close()
  },
  TEST_MS_MAX,
)
