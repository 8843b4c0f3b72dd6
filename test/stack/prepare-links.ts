// What the pods need of Cassandra before they start: the tables, by a migrate Job, and codes in the
// pool, by a refill Job with a code secret.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Job, startJob } from '../component/role-job.ts'
import type { CassandraCluster } from '../parts/cassandra.ts'

const JOB_MS_MAX = 120_000
const SECRET_BYTES = 32

/** A store of links that is ready. */
export interface PreparedLinks {
  /** The settings by which a role finds Cassandra. */
  readonly env: Readonly<Record<string, string>>
  /** Starts a refill Job. With a secret of its own it is another one than the others have. */
  readonly startRefill: (refill: RefillOptions) => Job
  /** A file with a secret that nobody else has. */
  readonly makeSecret: () => Promise<string>
}

interface RefillOptions {
  /** @default `default` */
  readonly pool?: string
  /** Codes to fill it up to. */
  readonly target: number
  readonly secretFile?: string
}

/** Makes the tables and so many codes; secrets lie in `folder`. */
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
  const makeSecret = async () => {
    const file = join(folder, randomBytes(8).toString('hex'))
    await writeFile(file, randomBytes(SECRET_BYTES), { mode: 0o600 })
    return file
  }
  const secret = await makeSecret()
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
  return { env, startRefill, makeSecret }
}
