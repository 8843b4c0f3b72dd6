// The distributed service as real processes for a test: three nodes of Cassandra behind proxies, a
// Redis behind a proxy for each process, and the roles `create` and `redirect` on top of them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { type FaultProxy, startFaultProxy } from '../fault-proxy.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { openClient } from '../http/client.ts'
import { DIE_WITH_PARENT } from '../../stack/component.ts'
import { type PreparedLinks, prepareLinks } from '../../stack/prepare-links.ts'
import { type ServingRole, startServingRole } from '../../stack/serving-role.ts'

/** The base URL of the short links of these processes. */
const MACHINES_BASE_URL = 'http://short.test'

/** Concurrent creates of a round of the warm-up, and how fast a round of a warm store is. */
const WARM_UP_CREATES = 16
const WARM_ROUND_MS = 500
const WARM_UP_MS_MAX = 60_000

/** A serving process. */
export interface Machine extends ServingRole {
  /** A proxy between this process and Redis. */
  readonly redisProxy: FaultProxy
}

/** The running service. */
export interface ManyMachines extends Pick<PreparedLinks, 'startRefill' | 'createSecret'> {
  readonly cassandra: CassandraCluster
  readonly redis: RedisServer
  readonly creates: readonly Machine[]
  readonly redirects: readonly Machine[]
  /** Starts another process; `stop` stops it too. */
  startMachine(role: Machine['role'], env?: Readonly<Record<string, string>>): Promise<Machine>
  /** Stops everything. */
  stop(): Promise<void>
}

/** Starts the service with `codes` codes in the pool `default`. Throws if it does not start. */
export async function startManyMachines(given: { codes: number }): Promise<ManyMachines> {
  const closing: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close()
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-machines-'))
    closing.push(() => rm(folder, { recursive: true }))
    const cassandra = await startCassandra({ nodes: 3, proxied: true })
    closing.push(() => cassandra.stop())
    const redis = await startRedis()
    closing.push(() => redis.close())
    const { env, startRefill, createSecret } = await prepareLinks({ cassandra, folder, ...given })
    const startMachine: ManyMachines['startMachine'] = async (role, more = {}) => {
      const machine = await openMachine({ role, redis, env: { ...env, ...more } })
      closing.push(async () => {
        await machine.stop()
        await machine.redisProxy.close()
      })
      return machine
    }
    const [creates, redirects] = await Promise.all([
      Promise.all([startMachine('create'), startMachine('create')]),
      Promise.all([startMachine('redirect'), startMachine('redirect')]),
    ])
    await warmUp(creates)
    return { cassandra, redis, creates, redirects, startMachine, startRefill, createSecret, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * Creates links until the nodes, whose JVMs have just started, are fast: the tests expect that
 * creates do not time out. On a machine that is too slow for this, stops after a minute.
 */
async function warmUp(creates: readonly Machine[]): Promise<void> {
  const clients = await Promise.all(creates.map(({ port }) => openClient(port)))
  try {
    const endMs = performance.now() + WARM_UP_MS_MAX
    for (let round = 0, isWarm = false; !isWarm && performance.now() < endMs; round++) {
      const startedMs = performance.now()
      const responses = await Promise.all(
        Array.from({ length: WARM_UP_CREATES / clients.length }).flatMap((_, at) =>
          clients.map((client, number) => {
            const alias = `w${String(round)}-${String(number)}-${String(at)}`
            return client.create({ long_url: 'https://example.com/', custom_alias: alias })
          }),
        ),
      )
      const areCreated = responses.every((response) => response.status === 201)
      isWarm = areCreated && performance.now() - startedMs < WARM_ROUND_MS
    }
  } finally {
    for (const client of clients) client.close()
  }
}

async function openMachine(given: {
  role: Machine['role']
  redis: RedisServer
  env: Readonly<Record<string, string>>
}): Promise<Machine> {
  const { role, redis, env } = given
  const redisProxy = await startFaultProxy({ to: { host: '127.0.0.1', port: redis.port } })
  const running = await startServingRole({
    role,
    wrapper: DIE_WITH_PARENT,
    env: {
      ...env,
      BASE_URL: MACHINES_BASE_URL,
      REDIS_URL: `redis://127.0.0.1:${String(redisProxy.port)}`,
    },
  }).catch(async (error: unknown) => {
    await redisProxy.close()
    throw error
  })
  return { ...running, redisProxy }
}
