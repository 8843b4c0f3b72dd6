// The role `wait-for-codes` against a real Cassandra node: it exits once the pool has its first
// codes, at the latest at its deadline.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { environmentOf, SETUP_MS_MAX } from '../../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { startJob } from '../../kit/processes/role-job.ts'
import { waitFor } from '../../kit/wait-for.ts'

jest.setTimeout(SETUP_MS_MAX)

const JOB_MS_MAX = 60_000

let cluster: CassandraCluster
let folder: string
let env: Record<string, string>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-test-'))
  cluster = await startCassandra({ nodes: 1 })
  env = environmentOf(cluster, 'codes')
  const replication = { CASSANDRA_REPLICATION: 'datacenter1:1' }
  await startJob({ role: 'migrate', env: { ...env, ...replication } }).succeeded(JOB_MS_MAX)
})

afterAll(async () => {
  await cluster.stop()
  await rm(folder, { recursive: true })
})

test('wait-for-codes exits with 0 at its deadline without codes, and logs the effect', async () => {
  const job = startJob({ role: 'wait-for-codes', env: { ...env, WAIT_SECONDS: '10' } })
  const output = await job.succeeded(JOB_MS_MAX)
  expect(output).toContain('waiting for the first codes')
  expect(output).toContain('only aliases can be created')
})

test('wait-for-codes exits once the pool has codes', async () => {
  const secret = join(folder, 'secret')
  await writeFile(secret, randomBytes(32))
  const job = startJob({ role: 'wait-for-codes', env })
  try {
    await waitFor('the wait to start', () => Promise.resolve(job.output().includes('waiting')))
    const pool = { CODE_SECRET_FILE: secret, POOL_TARGET: '1000' }
    await startJob({ role: 'refill', env: { ...env, ...pool } }).succeeded(JOB_MS_MAX)
    expect(await job.succeeded(JOB_MS_MAX)).toContain('pool filled')
  } finally {
    job.kill()
  }
})
