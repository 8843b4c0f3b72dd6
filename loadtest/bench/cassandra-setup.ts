// The setup of the benchmarks on Cassandra: one real node with the tables, a Redis, and a pool of
// codes.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startJob } from '../../test/kit/processes/role-job.ts'
import { type CassandraCluster, startCassandra } from '../../test/dependencies/cassandra.ts'
import { type RedisServer, startRedis } from '../../test/dependencies/redis.ts'
import { JMX_PORT } from './conditional-writes.ts'

/** The keyspace of the tables. */
export const KEYSPACE = 'curtail'

const JOB_MS_MAX = 300_000

/** The processes, and the environment for a role that uses them. */
export interface CassandraSetup {
  readonly cassandra: CassandraCluster
  readonly redis: RedisServer
  readonly env: Readonly<Record<string, string>>
}

/** Starts them with `codes` codes in the pool; prepends the functions that stop them to `stops`. */
export async function startCassandraSetup(
  stops: (() => Promise<void>)[],
  { codes }: { readonly codes: number },
): Promise<CassandraSetup> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  stops.unshift(() => rm(folder, { recursive: true }))
  const cassandra = await startCassandra({
    nodes: 1,
    isProductionJvm: true,
    jvmFlags: [`-Dcassandra.jmx.local.port=${JMX_PORT}`],
  })
  stops.unshift(() => cassandra.stop())
  const redis = await startRedis()
  stops.unshift(() => redis.close())
  const store = {
    CASSANDRA_CONTACT_POINTS: cassandra.contactPoints.join(','),
    CASSANDRA_PORT: String(cassandra.port),
    CASSANDRA_LOCAL_DC: cassandra.localDc,
    CASSANDRA_KEYSPACE: KEYSPACE,
  }
  const replication = { CASSANDRA_REPLICATION: `${cassandra.localDc}:1` }
  await startJob({ role: 'migrate', env: { ...store, ...replication } }).succeeded(JOB_MS_MAX)
  if (codes > 0) {
    const secret = join(folder, 'secret')
    await writeFile(secret, randomBytes(32))
    const refill = { ...store, CODE_SECRET_FILE: secret, POOL_TARGET: String(codes) }
    await startJob({ role: 'refill', env: refill }).succeeded(JOB_MS_MAX)
  }
  const env = {
    ...store,
    PORT: '0',
    ADMIN_PORT: '0',
    BASE_URL: 'http://s.example',
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
  }
  return { cassandra, redis, env }
}
