// The distributed service as real processes for a test: three nodes of Cassandra behind proxies, a
// Redis behind a proxy for each process, and the roles `create` and `redirect` on top of them.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CassandraCluster, startCassandra } from '../parts/cassandra.ts'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { type RedisServer, startRedis } from '../parts/redis.ts'
import { type Job, startJob } from './role-job.ts'
import { type RoleProcess, startRole } from './role-process.ts'

/** Short links of these processes begin so. */
const MACHINES_BASE_URL = 'http://short.test'
const ADMIN_TOKEN = 'token-of-the-tests'
const JOB_MS_MAX = 120_000
const SECRET_BYTES = 32
/** Ends a process when whoever started it dies. */
const NEVER_ALONE = ['setpriv', '--pdeathsig', 'KILL'] as const

/** A process that serves. */
export interface Machine extends RoleProcess {
  readonly role: 'create' | 'redirect'
  readonly port: number
  readonly adminUrl: string
  /** Between this process and Redis alone. */
  readonly redisProxy: FaultProxy
  /** The sum of all series of a metric whose line has all these texts in it. */
  metric(name: string, ...parts: readonly string[]): Promise<number>
  /** Asks its admin API, with the token. */
  admin(ask: { method?: string; path: string }): Promise<Response>
}

/** The whole of it. */
export interface ManyMachines {
  readonly cassandra: CassandraCluster
  readonly redis: RedisServer
  readonly creates: readonly Machine[]
  readonly redirects: readonly Machine[]
  /** A further process; `stop` ends it too. */
  startMachine(role: Machine['role'], env?: Readonly<Record<string, string>>): Promise<Machine>
  /** Starts a refill Job. With a secret of its own it is another one than the others have. */
  startRefill(refill: { pool?: string; target: number; secretFile?: string }): Job
  /** A file with a secret that nobody else has. */
  makeSecret(): Promise<string>
  /** Ends all of it. */
  stop(): Promise<void>
}

/** Starts all of it, with so many codes in the pool `default`. Throws why it does not start. */
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
    const env = {
      CASSANDRA_CONTACT_POINTS: cassandra.contactPoints.join(','),
      CASSANDRA_PORT: String(cassandra.port),
      CASSANDRA_LOCAL_DC: cassandra.localDc,
    }
    const makeSecret = async () => {
      const file = join(folder, randomBytes(8).toString('hex'))
      await writeFile(file, randomBytes(SECRET_BYTES), { mode: 0o600 })
      return file
    }
    const secret = await makeSecret()
    const startRefill: ManyMachines['startRefill'] = ({ pool = 'default', target, secretFile }) => {
      const own = { CODE_SECRET_FILE: secretFile ?? secret, POOL_TARGET: String(target) }
      return startJob({ role: 'refill', env: { ...env, ...own, CODE_POOL: pool } })
    }
    const replication = `${cassandra.localDc}:3`
    await startJob({
      role: 'migrate',
      env: { ...env, CASSANDRA_REPLICATION: replication },
    }).succeeded(JOB_MS_MAX)
    await startRefill({ target: given.codes }).succeeded(JOB_MS_MAX)
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
    return { cassandra, redis, creates, redirects, startMachine, startRefill, makeSecret, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function openMachine(given: {
  role: Machine['role']
  redis: RedisServer
  env: Readonly<Record<string, string>>
}): Promise<Machine> {
  const { role, redis, env } = given
  const redisProxy = await startFaultProxy({ to: { host: '127.0.0.1', port: redis.port } })
  const running = await startRole({
    role,
    wrapper: NEVER_ALONE,
    env: {
      ...env,
      ...{ PORT: '0', ADMIN_PORT: '0', BASE_URL: MACHINES_BASE_URL },
      REDIS_URL: `redis://127.0.0.1:${String(redisProxy.port)}`,
      ...(role === 'create' && { ADMIN_TOKEN }),
    },
  }).catch(async (error: unknown) => {
    await redisProxy.close()
    throw error
  })
  const { port, adminPort } = running.ready
  const adminUrl = `http://127.0.0.1:${String(adminPort)}`
  return {
    ...running,
    role,
    port: Number(port),
    adminUrl,
    redisProxy,
    async metric(name, ...parts) {
      const text = await (await fetch(`${adminUrl}/metrics`)).text()
      const lines = text.split('\n').filter((line) => {
        return new RegExp(`^${name}[{ ]`).test(line) && parts.every((part) => line.includes(part))
      })
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
    },
    admin({ method = 'GET', path }) {
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` }
      return fetch(`${adminUrl}/admin${path}`, { method, headers })
    },
  }
}
