// Prepares Cassandra for the pods: a migrate Job creates the tables, and a refill Job generates the
// codes of the pool with a code secret.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Job, startJob } from '../kit/processes/role-job.ts'
import type { CassandraCluster } from '../dependencies/cassandra.ts'

const JOB_MS_MAX = 120_000
const SECRET_BYTES = 32

/** A link store that is ready. */
export interface PreparedLinks {
  /** The settings with which a role connects to Cassandra. */
  readonly env: Readonly<Record<string, string>>
  /** Starts a refill Job; its secret is the shared one unless `secretFile` names another. */
  readonly startRefill: (refill: RefillOptions) => Job
  /** Writes a new random secret to a file; resolves to its path. */
  readonly createSecret: () => Promise<string>
}

interface RefillOptions {
  /** @default `default` */
  readonly pool?: string
  /** Number of codes to fill the pool up to. */
  readonly target: number
  readonly secretFile?: string
}

/** Creates the tables and `codes` codes; secrets are stored in `folder`. */
export async function prepareLinks(given: {
  cassandra: CassandraCluster
  folder: string
  codes: number
}): Promise<PreparedLinks> {
  const { cassandra, folder, codes } = given
  const env = {
    CASSANDRA_CONTACT_POINTS: cassandra.contactPoints.join(','),
    CASSANDRA_PORT: String(cassandra.port),
    CASSANDRA_LOCAL_DC: cassandra.localDc,
  }
  const createSecret = async () => {
    const file = join(folder, randomBytes(8).toString('hex'))
    await writeFile(file, randomBytes(SECRET_BYTES), { mode: 0o600 })
    return file
  }
  const secret = await createSecret()
  const startRefill: PreparedLinks['startRefill'] = ({ pool = 'default', target, secretFile }) => {
    const own = { CODE_SECRET_FILE: secretFile ?? secret, POOL_TARGET: String(target) }
    return startJob({ role: 'refill', env: { ...env, ...own, CODE_POOL: pool } })
  }
  const replication = `${cassandra.localDc}:${String(cassandra.nodes.length)}`
  const migrate = startJob({
    role: 'migrate',
    env: { ...env, CASSANDRA_REPLICATION: replication },
  })
  await migrate.succeeded(JOB_MS_MAX)
  await startRefill({ target: codes }).succeeded(JOB_MS_MAX)
  return { env, startRefill, createSecret }
}
