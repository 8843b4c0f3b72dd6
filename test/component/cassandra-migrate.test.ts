// The role `migrate` against a real node that asks for passwords and whose settings are not those
// that the design rests on: what it makes, what it says, and when it ends.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { schemaVersion } from '../../src/stores/cassandra/schema.ts'
import { environmentOf, SETUP_MS_MAX } from '../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../parts/cassandra.ts'
import { createAuthority } from './grpc-certificates.ts'
import { type Run, runCurtail } from './run-curtail.ts'

jest.setTimeout(SETUP_MS_MAX)

/** A node may have to start meanwhile. */
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
  const given = { ...environmentOf(cluster, 'm'), ...LOGIN, ...env }
  return runCurtail(['migrate', ...args], given, RUN_MS_MAX)
}

function linesOf({ stdout }: Run): Record<string, unknown>[] {
  const lines = stdout.trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('a missing keyspace ends it with the statement to run', async () => {
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
])('%s ends it with one sentence', async (_, env, sentence) => {
  const run = await migrate(env)
  expect(run).toMatchObject({ exitCode: 1, stderr: `curtail: ${sentence}\n` })
  expect(run.stdout).not.toContain('wrong-word')
})

test('run twice at once, both end well and each step is done once', async () => {
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

test('run again, with its password in a file, it changes nothing', async () => {
  const file = join(folder, 'password')
  await writeFile(file, 'cassandra\n')
  const run = await migrate({ CASSANDRA_PASSWORD: '', CASSANDRA_PASSWORD_FILE: file })
  expect(run.exitCode).toBe(0)
  expect(linesOf(run).at(-1)).toMatchObject({ msg: 'migrated', applied: 0 })
})

test('a setting that differs is told with what it costs, and no other', async () => {
  const findings = linesOf(await migrate({})).filter((line) => line['setting'] !== undefined)
  expect(findings).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      setting: 'paxos_variant',
      values: ['v1'],
      wanted: 'v2',
      costs: expect.stringContaining('round trips'),
    }),
  )
  expect(findings.map((line) => line['setting'])).not.toContain('storage_compatibility_mode')
})

test('TLS is spoken where an authority is given; another one’s node ends it', async () => {
  const [ours, other] = [join(folder, 'ca.pem'), join(folder, 'other.pem')]
  await writeFile(ours, authority.cert)
  await writeFile(other, createAuthority('another').cert)
  const good = await migrate({ CASSANDRA_TLS_CA: ours })
  expect(good).toMatchObject({ exitCode: 0, stderr: '' })
  const bad = await migrate({ CASSANDRA_TLS_CA: other })
  expect(bad.exitCode).toBe(1)
  expect(bad.stderr).toMatch(/^curtail: TLS with Cassandra fails: .*\(CASSANDRA_TLS_CA\)\n$/)
})

test('begun before anything answers, it waits and then does its work', async () => {
  await cluster.node(0).kill()
  const running = migrate(REPLICATION)
  await cluster.node(0).restart()
  const run = await running
  expect(run.exitCode).toBe(0)
  expect(linesOf(run)[0]?.['msg']).toMatch(/^Cassandra is unavailable at CASSANDRA_CONTACT_POINTS/)
})
