// The roles that wait for codes and raise pools, against a real Cassandra node: `wait-for-codes`
// exits once the pool has its first codes, at the latest at its deadline; after `pool raise`, no
// block up to the given one is claimed. Each test depends on those before it.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { parseConfig } from '../../../src/config/config.ts'
import { raisePool } from '../../../src/pools/raise-pool.ts'
import { type Cassandra, openCassandra } from '../../../src/stores/cassandra/client.ts'
import { createCassandraCodeStore } from '../../../src/stores/cassandra/code-store.ts'
import { createKeyspace } from '../../../src/stores/cassandra/schema.ts'
import { raiseClaimed } from '../../../src/stores/cassandra/raise-claimed.ts'
import { cassandraSettings } from '../../../src/stores/cassandra/settings.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { environmentOf, quiet, SETUP_MS_MAX } from '../../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { type Job, startJob } from '../../kit/processes/role-job.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

jest.setTimeout(SETUP_MS_MAX)

const JOB_MS_MAX = 60_000
const LAST_BLOCK = 25

let cluster: CassandraCluster
let cassandra: Cassandra
let folder: string
let env: Record<string, string>
/** Waits for the codes of a pool that has none, while the other tests run. */
let waiting: Job

const refill = (pool: string, target: number) => {
  const settings = { CODE_POOL: pool, POOL_TARGET: String(target) }
  const job = startJob({
    role: 'refill',
    env: { ...env, ...settings, CODE_SECRET_FILE: join(folder, 'secret') },
  })
  return job.succeeded(JOB_MS_MAX)
}

/** Runs the command; its exit code, its output, and what it prints on stderr. */
async function raise(args: readonly string[], more: object = {}) {
  const job = startJob({ role: 'pool', args: ['raise', ...args], env: { ...env, ...more } })
  const { exitStatus, stdout, stderr } = await withinDeadline('pool raise', job.exited, JOB_MS_MAX)
  return { exitStatus, stdout, stderr }
}
const rejected = (exitStatus: number, message: RegExp) => ({
  ...{ exitStatus, stdout: '' },
  stderr: expect.stringMatching(message) as unknown,
})
const codes = () => createCassandraCodeStore(cassandra)
const hasBlock = async (pool: string, seq: number) =>
  ((await codes().readBlock({ pool, seq }))?.length ?? 0) > 900 // without offensive codes
const counters = async () => {
  const rows = await Promise.all(['default', 'other'].map((pool) => codes().readPoolSerial(pool)))
  return rows.map((row) => [row?.claimed, row?.minted])
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-test-'))
  await writeFile(join(folder, 'secret'), randomBytes(32))
  cluster = await startCassandra({ nodes: 1 })
  env = environmentOf(cluster, 'codes')
  const replication = { CASSANDRA_REPLICATION: 'datacenter1:1' }
  await startJob({ role: 'migrate', env: { ...env, ...replication } }).succeeded(JOB_MS_MAX)
  cassandra = openCassandra({
    config: parseConfig(cassandraSettings, env),
    metrics: createMetrics(),
    log: quiet,
  })
  await cassandra.ready
  const ofEmptyPool = { CODE_POOL: 'without-codes', WAIT_SECONDS: '10' }
  waiting = startJob({ role: 'wait-for-codes', env: { ...env, ...ofEmptyPool } })
})

afterAll(async () => {
  waiting.kill()
  await cassandra.close()
  await cluster.stop()
  await rm(folder, { recursive: true })
})

test('wait-for-codes exits once the pool has codes', async () => {
  const job = startJob({ role: 'wait-for-codes', env })
  try {
    await waitFor('the wait to start', () => Promise.resolve(job.output().includes('waiting')))
    await refill('default', 5000)
    expect(await job.succeeded(JOB_MS_MAX)).toContain('pool filled')
  } finally {
    job.kill()
  }
  await refill('other', 3000)
})

test('nothing is raised if an argument is not valid', async () => {
  const before = await counters()
  const faults: readonly (readonly [args: string, exitStatus: number, message: RegExp])[] = [
    ['', 2, /pool raise requires POOL=BLOCK/],
    ['default=0', 2, /POOL=BLOCK, with BLOCK from 1 to \d+.*: it is "default=0"/],
    ['default=1.5', 2, /it is "default=1\.5"/],
    ['default=9 --created=0', 2, /COUNT from 1 to 63.*: it is "--created=0"/],
    ['default=7 default=8', 2, /pool default occurs twice/],
    ['default=7 missing=1', 1, /unknown pool missing: .* default, other; .*--created=COUNT/],
    ['default=7', 1, /every pool .*; these are not: other \(last claimed block: 0\)/],
    ['default=100001 other=1', 1, /default would skip 100001 blocks after 0: .*--force/],
  ]
  for (const [args, exitStatus, message] of faults) {
    const given = args.split(' ').filter((arg) => arg !== '')
    expect([args, await raise(given)]).toEqual([args, rejected(exitStatus, message)])
  }
  expect(await counters()).toEqual(before)
})

test('the cause is printed if Cassandra cannot be used', async () => {
  const causes: readonly (readonly [env: object, message: RegExp])[] = [
    [{ CASSANDRA_KEYSPACE: 'missing' }, /unknown keyspace missing/],
    [{ CASSANDRA_LOCAL_DC: 'dc9' }, /CASSANDRA_LOCAL_DC must be one of datacenter1/],
    [{ CASSANDRA_KEYSPACE: 'empty' }, /Cassandra rejects a statement: .*code_pools/],
  ]
  await cassandra.changeSchema(createKeyspace('empty', [{ dc: cluster.localDc, replicas: 1 }]))
  for (const [more, message] of causes)
    expect([more, await raise(['default=7'], more)]).toEqual([more, rejected(1, message)])
})

test('claims continue after the given block, and refills too', async () => {
  expect(await raise(['default=4700', 'other=2'])).toEqual({
    ...{ exitStatus: 0, stderr: '' },
    stdout:
      'default: the last claimed block was 0, and is now 4700\n' +
      'other: the last claimed block was 0, and is now 2\n',
  })
  expect(await counters()).toEqual([
    [4700, 4700],
    [2, 3],
  ])
  expect(await raise(['default=1', 'other=2'])).toMatchObject({
    ...{ exitStatus: 0, stderr: '' },
    stdout:
      'default: the last claimed block is 4700 already\n' +
      'other: the last claimed block is 2 already\n',
  })
  await refill('default', 2000)
  const writerId = randomUUID()
  const claimed = await codes().claimNext({ pool: 'default', from: 4700, writerId })
  expect(claimed).toMatchObject({ claimed: 4701, minted: 4702, writerId })
  expect(await hasBlock('default', 4701)).toBe(true)
})

test('the numbers of pools that were created since the backup are not used', async () => {
  expect(await raise(['default=1', 'other=1', '--created=2'])).toMatchObject({ exitStatus: 0 })
  const created = await codes().insertPoolIfAbsent({ pool: 'lost', secretFingerprint: 'f00d' })
  expect(created.poolNumber).toBe(4) // after two pools, and two numbers
})

test('--force allows a number that skips most of the code space', async () => {
  expect(await raise(['default=900000', 'other=2', 'lost=1', '--force'])).toMatchObject({
    exitStatus: 0,
  })
  expect(await counters()).toMatchObject([
    [900_000, 900_000],
    [2, 3],
  ])
})

test('claims and refills continue during a raise', async () => {
  await refill('other', 40_000)
  const store = codes()
  const claims: { readonly seq: number; readonly isAfter: boolean }[] = []
  let isRaised = false
  /** Claims blocks until five claims have started after the raise. */
  const claim = async () => {
    for (let left = 5; left > 0;) {
      const isAfter = isRaised
      const { claimed: from = 0 } = (await store.readPoolSerial('other')) ?? {}
      const writerId = randomUUID()
      const row = await store.claimNext({ pool: 'other', from, writerId })
      if (row.writerId !== writerId || row.claimed !== from + 1) continue
      claims.push({ seq: row.claimed, isAfter })
      if (isAfter) left--
    }
  }
  const operate = async () => {
    const deps = { codes: store, raiseClaimed: raiseClaimed.bind(undefined, cassandra) }
    const { after } = await raisePool(deps, { pool: 'other', to: LAST_BLOCK })
    expect(after.claimed).toBeGreaterThanOrEqual(LAST_BLOCK)
    isRaised = true
  }
  await Promise.all([claim(), claim(), operate(), refill('other', 50_000)])
  const seqs = claims.map(({ seq }) => seq)
  expect(new Set(seqs).size).toBe(seqs.length)
  const after = claims.filter(({ isAfter }) => isAfter)
  expect(Math.min(...after.map(({ seq }) => seq))).toBeGreaterThan(LAST_BLOCK)
  expect(seqs.length).toBeLessThan(Math.max(...seqs) - 2) // blocks after 2 were skipped
  for (const { seq } of after) expect([seq, await hasBlock('other', seq)]).toEqual([seq, true])
})

test('wait-for-codes exits with 0 at its deadline without codes, and logs the effect', async () => {
  const output = await waiting.succeeded(JOB_MS_MAX)
  expect(output).toContain('waiting for the first codes')
  expect(output).toContain('only aliases can be created')
})
