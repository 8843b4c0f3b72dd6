// The role `migrate` against a real node that requires passwords and has settings that are not
// recommended: the schema, the output and the exit code.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { schemaVersion } from '../../../src/stores/cassandra/schema.ts'
import { environmentOf, SETUP_MS_MAX } from '../../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { startJob } from '../../kit/processes/role-job.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'
import { waitFor } from '../../kit/wait-for.ts'

jest.setTimeout(SETUP_MS_MAX)

/** Enough for a node to start during the run. */
const RUN_MS_MAX = 90_000
const LOGIN = { CASSANDRA_USERNAME: 'cassandra', CASSANDRA_PASSWORD: 'cassandra' }
const REPLICATION = { CASSANDRA_REPLICATION: 'datacenter1:1' }

const authority = createAuthority('authority')

let cluster: CassandraCluster
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-test-'))
  const server = authority.issue(['cassandra'])
  const tls = {
    enabled: true,
    optional: true,
    require_client_auth: 'false',
    ssl_context_factory: {
      class_name: 'org.apache.cassandra.security.PEMBasedSslContextFactory',
      parameters: {
        private_key: server.key + server.cert,
        trusted_certificates: authority.cert,
      },
    },
  }
  const settings = {
    authenticator: 'PasswordAuthenticator',
    paxos_variant: 'v1',
    client_encryption_options: tls,
  }
  cluster = await startCassandra({ nodes: 1, settings })
})

afterAll(async () => {
  await cluster.stop()
  await rm(folder, { recursive: true })
})

function migrate(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Run> {
  const environment = { ...environmentOf(cluster, 'm'), ...LOGIN, ...env }
  return runCurtail(['migrate', ...args], environment, RUN_MS_MAX)
}

function linesOf({ stdout }: Pick<Run, 'stdout'>): Record<string, unknown>[] {
  const lines = stdout.trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('migrate without a keyspace prints the statement to run, and exits with 1', async () => {
  const run = await migrate({})
  expect(run).toMatchObject({
    exitCode: 1,
    stderr:
      'curtail: unknown keyspace m: set CASSANDRA_REPLICATION, such as datacenter1:3, ' +
      'or run: CREATE KEYSPACE IF NOT EXISTS m WITH replication = ' +
      "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3};\n",
  })
})

test.each([
  [
    'a wrong password',
    { CASSANDRA_PASSWORD: 'wrong-word' },
    'Cassandra rejects CASSANDRA_USERNAME and CASSANDRA_PASSWORD: ' +
      'use those of a role that may log in',
  ],
  [
    'no credentials',
    { CASSANDRA_USERNAME: '', CASSANDRA_PASSWORD: '' },
    'Cassandra requires credentials: set CASSANDRA_USERNAME and CASSANDRA_PASSWORD',
  ],
  [
    'a wrong data center',
    { CASSANDRA_LOCAL_DC: 'dc9' },
    'CASSANDRA_LOCAL_DC must be one of datacenter1: current value is dc9',
  ],
])('migrate with %s prints one error message, and exits with 1', async (_, env, message) => {
  const run = await migrate(env)
  expect(run).toMatchObject({ exitCode: 1, stderr: `curtail: ${message}\n` })
  expect(run.stdout).not.toContain('wrong-word')
})

test('two concurrent runs of migrate succeed, and apply each step once', async () => {
  const waiting = migrate({}, '--wait')
  const runs = await Promise.all([migrate(REPLICATION), migrate(REPLICATION)])
  expect(runs.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
    [0, ''],
    [0, ''],
  ])
  const results = runs.map((run) => linesOf(run).at(-1))
  for (const result of results)
    expect(result).toMatchObject({ msg: 'migrated', keyspace: 'm', version: schemaVersion })
  const applied = results.map((result) => result?.['applied']).sort()
  expect(applied).toEqual([0, schemaVersion])
  const waited = await waiting
  expect(waited).toMatchObject({ exitCode: 0, stderr: '' })
  expect(linesOf(waited).at(-1)).toMatchObject({ msg: 'schema present' })
})

test('a second run of migrate, with its password in a file, changes nothing', async () => {
  const file = join(folder, 'password')
  await writeFile(file, 'cassandra\n')
  const run = await migrate({ CASSANDRA_PASSWORD: '', CASSANDRA_PASSWORD_FILE: file })
  expect(run.exitCode).toBe(0)
  expect(linesOf(run).at(-1)).toMatchObject({ msg: 'migrated', applied: 0 })
})

test('migrate warns of each setting that differs, with its cost, and of no other', async () => {
  const warnings = linesOf(await migrate({})).filter((line) => line['setting'] !== undefined)
  expect(warnings).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      setting: 'paxos_variant',
      values: ['v1'],
      wanted: 'v2',
      costs: expect.stringContaining('round trips'),
    }),
  )
  expect(warnings.map((line) => line['setting'])).not.toContain('storage_compatibility_mode')
})

test('migrate uses TLS if a CA is configured, and rejects the certificate of another', async () => {
  const [ours, other] = [join(folder, 'ca.pem'), join(folder, 'other.pem')]
  await writeFile(ours, authority.cert)
  await writeFile(other, createAuthority('another').cert)
  const trusted = await migrate({ CASSANDRA_TLS_CA: ours })
  expect(trusted).toMatchObject({ exitCode: 0, stderr: '' })
  const untrusted = await migrate({ CASSANDRA_TLS_CA: other })
  expect(untrusted.exitCode).toBe(1)
  expect(untrusted.stderr).toMatch(
    /^curtail: TLS with Cassandra failed: .*: check CASSANDRA_TLS_CA\n$/,
  )
})

test('migrate waits for a node that is down, and then migrates', async () => {
  await cluster.node(0).kill()
  const env = { ...environmentOf(cluster, 'm'), ...LOGIN, ...REPLICATION }
  const job = startJob({ role: 'migrate', env })
  await waitFor('its first line', () => job.output().includes('\n'), RUN_MS_MAX)
  await cluster.node(0).restart()
  const [first] = linesOf({ stdout: await job.succeeded(RUN_MS_MAX) })
  expect(first?.['msg']).toMatch(/^Cassandra is unavailable at CASSANDRA_CONTACT_POINTS/)
  expect(first?.['level']).toBe('info')
})
