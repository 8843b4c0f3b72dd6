// The Cassandra stores on a real node: TTLs of rows, numbers of pools, and a node that fails and
// recovers. test/contract tests the requirements of every store.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { POOL_NUMBERS } from '../../../src/codes/block.ts'
import { QUARANTINE_MS } from '../../../src/links/expiry.ts'
import type { Link } from '../../../src/links/link.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { OperatorError } from '../../../src/process/role.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import { TIMED_OUT_MAX } from '../../../src/stores/cassandra/calls.ts'
import { openCassandra } from '../../../src/stores/cassandra/client.ts'
import { createCassandraCodeStore, readPools } from '../../../src/stores/cassandra/code-store.ts'
import { createCassandraLinkStore } from '../../../src/stores/cassandra/link-store.ts'
import { migrate } from '../../../src/stores/cassandra/migrations.ts'
import { createKeyspace, migrations, schemaVersion } from '../../../src/stores/cassandra/schema.ts'
import {
  type OpenedCassandra,
  openNode,
  quiet,
  SETUP_MS_MAX,
} from '../../contract/open-cassandra.ts'
import { freshCode, sampleLink } from '../../contract/sample-link.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

jest.setTimeout(SETUP_MS_MAX)

const [DAY_MS, DAY_SECONDS] = [86_400_000, 86_400]
/** Longer than the interval at which a client checks which nodes are up. */
const NODE_CHECK_MS = 1500

let node: OpenedCassandra

beforeAll(async () => {
  node = await openNode('component')
})

afterAll(() => node.close())

const links = () => createCassandraLinkStore(node.cassandra)

async function stored(change: Partial<Link>): Promise<Link> {
  const link = sampleLink({ createdAtMs: Date.now(), ...change })
  expect(await links().insertIfAbsent(link)).toBe(link.writerId)
  return link
}

/** A link whose row expires `ms` from now: its quarantine is nearly over. */
const expiringIn = (ms: number) => stored({ expiresAtMs: Date.now() - QUARANTINE_MS + ms })

async function rowsOf(code: string) {
  return node.cassandra.execute('majority-read', 'SELECT * FROM links WHERE short_code = ?', [code])
}

async function ttlsOf(code: string) {
  const cql = `SELECT TTL(long_url) AS long_url, TTL(writer_id) AS writer_id,
    TTL(created_at) AS created_at, TTL(expires_at) AS expires_at,
    TTL(disabled_at) AS disabled_at, TTL(deleted_at) AS deleted_at
    FROM links WHERE short_code = ?`
  const [row] = await node.cassandra.execute('majority-read', cql, [code])
  return row as Record<string, number | null>
}

test('the TTL of 3,650 days, past 2038, is stored with the quarantine added', async () => {
  const { code } = await stored({ expiresAtMs: Date.now() + 3650 * DAY_MS })
  const { long_url: seconds } = await ttlsOf(code)
  expect(seconds).toBeGreaterThan((3650 + 31) * DAY_SECONDS - 60)
  expect(seconds).toBeLessThanOrEqual((3650 + 31) * DAY_SECONDS)
})

test('the row of a link without expiry, or with one beyond 20 years, has no TTL', async () => {
  const { code } = await stored({ expiresAtMs: null })
  expect(await ttlsOf(code)).toMatchObject({ long_url: null, writer_id: null })
  const far = await stored({ expiresAtMs: Date.now() + 8000 * DAY_MS })
  expect(await ttlsOf(far.code)).toMatchObject({ long_url: null, writer_id: null })
})

test('the row of an expired link still exists, and its code is taken', async () => {
  const link = await stored({ expiresAtMs: Date.now() - 1000 })
  expect(await links().find(link.code)).toEqual(link)
  expect(await links().findOnReplica(link.code)).toEqual(link)
  expect(await links().insertIfAbsent(sampleLink({ code: link.code }))).toBe(link.writerId)
})

test('disabling keeps the remaining TTL, and enabling changes no other cell', async () => {
  const { code } = await stored({ expiresAtMs: Date.now() + 5 * DAY_MS })
  await links().setDisabled({ code, disabledAtMs: Date.now() })
  const disabled = await ttlsOf(code)
  expect(disabled['disabled_at']).toBeGreaterThan(36 * DAY_SECONDS - 60)
  expect(disabled['disabled_at']).toBeLessThanOrEqual(36 * DAY_SECONDS)
  await links().setDisabled({ code, disabledAtMs: null })
  const enabled = await ttlsOf(code)
  expect(enabled['disabled_at']).toBeNull()
  expect(enabled['long_url']).toBeGreaterThan(36 * DAY_SECONDS - 60)
})

/** Links that expire in 3 s, after `change`; changes others if the machine paused meanwhile. */
async function changeBeforeExpiry(change: (links: readonly [Link, Link]) => Promise<unknown>) {
  for (let attempt = 1; ; attempt++) {
    const startedMs = Date.now()
    const both = [await expiringIn(3000), await expiringIn(3000)] as const
    try {
      await change(both)
      return both
    } catch (error) {
      if (attempt === 3 || Date.now() - startedMs < 2000) throw error
    }
  }
}

test('a disabled or enabled link leaves no cells: its code is free after expiry', async () => {
  const [disabled, enabled] = await changeBeforeExpiry(async ([one, other]) => {
    const at = { disabledAtMs: Date.now() }
    expect(await links().setDisabled({ code: one.code, ...at })).toEqual({ ...one, ...at })
    await links().setDisabled({ code: other.code, ...at })
    expect(await links().setDisabled({ code: other.code, disabledAtMs: null })).toEqual(other)
  })
  for (const { code } of [disabled, enabled]) {
    await waitFor('the expiry of the row', async () => (await rowsOf(code)).length === 0)
    const next = sampleLink({ code })
    expect(await links().insertIfAbsent(next)).toBe(next.writerId)
  }
})

test('the row of a deleted link outlives its TTL, without its target', async () => {
  let record: Link | undefined
  const [{ code }, control] = await changeBeforeExpiry(async ([one]) => {
    await links().setDisabled({ code: one.code, disabledAtMs: 5 })
    record = await links().erase({ code: one.code, deletedAtMs: Date.now() })
    expect(record).toMatchObject({ longUrl: null, disabledAtMs: 5, writerId: one.writerId })
  })
  expect(new Set(Object.values(await ttlsOf(code)))).toEqual(new Set([null]))
  await waitFor('the expiry of the row', async () => (await rowsOf(control.code)).length === 0)
  expect(await links().readSerial(code)).toEqual(record)
  expect(await links().insertIfAbsent(sampleLink({ code }))).toBe(record?.writerId)
})

test('links of the first schema survive migrations, and can be changed', async () => {
  const { cassandra: root, cluster, config } = node
  const steps = migrations.slice(0, 1)
  const callbacks = { onStep: () => undefined, onWait: () => undefined }
  const run = { keyspace: 'older', signal: new AbortController().signal, ...callbacks }
  await root.changeSchema(createKeyspace('older', [{ dc: cluster.localDc, replicas: 1 }]))
  expect(await migrate(root, { ...run, steps })).toEqual({ version: 1, applied: 1 })
  const own = { ...config, CASSANDRA_KEYSPACE: 'older' }
  const cassandra = openCassandra({ config: own, metrics: createMetrics(), log: quiet })
  try {
    await cassandra.ready
    const older = createCassandraLinkStore(cassandra)
    const link = sampleLink({ disabledAtMs: 5 })
    expect(await older.insertIfAbsent(link)).toBe(link.writerId)
    expect(await older.find(link.code)).toEqual(link)
    const enable = { code: link.code, disabledAtMs: null }
    await expect(older.setDisabled(enable)).rejects.toMatchObject({ outcome: 'not-done' })
    const migrated = { version: schemaVersion, applied: schemaVersion - 1 }
    expect(await migrate(root, run)).toEqual(migrated)
    expect(await migrate(root, run)).toEqual({ ...migrated, applied: 0 })
    expect(await older.setDisabled(enable)).toEqual({ ...link, disabledAtMs: null })
    expect(await older.find(link.code)).toEqual({ ...link, disabledAtMs: null })
  } finally {
    await cassandra.close()
  }
})

test('a row without a writer is not a link, and its code cannot be claimed', async () => {
  const code = freshCode()
  const cql = 'UPDATE links SET disabled_at = ? WHERE short_code = ? IF long_url = null'
  await node.cassandra.execute('lwt', cql, [new Date(), code])
  expect(await links().find(code)).toBeUndefined()
  const link = sampleLink({ code })
  expect(await links().insertIfAbsent(link)).not.toBe(link.writerId)
  expect(await links().setDisabled({ code, disabledAtMs: 1 })).toBeUndefined()
})

test('a pool whose creation failed after it got its number keeps that number', async () => {
  const codes = createCassandraCodeStore(node.cassandra)
  const first = await codes.insertPoolIfAbsent({ pool: 'first', secretFingerprint: 'f' })
  const taken = 'INSERT INTO code_pool_numbers (pool_number, pool) VALUES (?, ?) IF NOT EXISTS'
  await node.cassandra.execute('lwt', taken, [first.poolNumber + 1, 'incomplete'])
  const other = await codes.insertPoolIfAbsent({ pool: 'other', secretFingerprint: 'f' })
  const incomplete = await codes.insertPoolIfAbsent({ pool: 'incomplete', secretFingerprint: 'f' })
  expect(incomplete.poolNumber).toBe(first.poolNumber + 1)
  expect(other.poolNumber).toBe(first.poolNumber + 2)
})

test('64 pools have distinct numbers and are listed by one read; a 65th is rejected', async () => {
  const codes = createCassandraCodeStore(node.cassandra)
  const before = await readPools(node.cassandra)
  for (let count = before.length; count < POOL_NUMBERS; count++) {
    await codes.insertPoolIfAbsent({ pool: `pool-${String(count)}`, secretFingerprint: 'f' })
  }
  const pools = await readPools(node.cassandra)
  expect(pools.map(({ poolNumber }) => poolNumber)).toEqual([...Array(POOL_NUMBERS).keys()])
  expect(pools[0]).toMatchObject({ pool: 'first', minted: 0, claimed: 0, owner: null })
  const rejected = codes.insertPoolIfAbsent({ pool: 'one-more', secretFingerprint: 'f' })
  const message = 'pool one-more cannot be created: a keyspace has at most 64 pools in its lifetime'
  await expect(rejected).rejects.toThrow(new OperatorError(message))
  const existing = await codes.insertPoolIfAbsent({ pool: 'first', secretFingerprint: 'f' })
  expect(existing.poolNumber).toBe(pools[0]?.poolNumber)
})

test('invalid arguments are a defect, not a store error', async () => {
  await expect(stored({ writerId: 'no uuid' })).rejects.toThrow(TypeError)
})

test('metrics count statements and driver calls, without a host or a key', async () => {
  await stored({})
  const text = await node.metrics.registry.metrics()
  expect(text).toMatch(
    /curtail_cassandra_call_duration_seconds_count\{statement="lwt",result="ok"\} \d+/,
  )
  expect(text).toMatch(/^curtail_cassandra_response_duration_seconds_count [1-9]/m)
  expect(text).toMatch(/^curtail_cassandra_connections [1-9]/m)
  expect(text).not.toContain(node.cluster.contactPoints[0])
})

const responds = ({ find }: { find: (code: string) => Promise<unknown> }) =>
  find('none').then(
    () => true,
    () => false,
  )

const options = () => ({ config: node.config, metrics: createMetrics(), log: quiet })

/** Opens a client of its own, and collects the states that it reports. */
async function openOwn() {
  const states: string[] = []
  const cassandra = openCassandra({ ...options(), onState: (state) => states.push(state) })
  const own = createCassandraLinkStore(cassandra)
  await waitFor('a majority', () => cassandra.isUp())
  return { cassandra, own, states }
}

test('requests that need a majority are rejected immediately while a node hangs', async () => {
  const { cassandra, own, states } = await openOwn()
  node.cluster.node(0).pause()
  try {
    await expect(own.insertIfAbsent(sampleLink())).rejects.toMatchObject({ outcome: 'unknown' })
    let isSettled = false
    void responds({ find: (code) => own.readSerial(code) }).then(() => (isSettled = true))
    await waitFor('the circuit breaker', () => states.includes('no-majority'))
    expect(isSettled).toBe(true)
    await expect(own.find('none')).rejects.toThrow('no majority of replicas responds')
  } finally {
    node.cluster.node(0).resume()
  }
  await waitFor('the majority', () => cassandra.isUp())
  expect(states).toEqual(['up', 'no-majority', 'up'])
  await cassandra.close()
})

test('timed-out requests of one kind are bounded, and do not mark the node as down', async () => {
  const { cassandra, own, states } = await openOwn()
  await Promise.all([own.find('none'), own.findOnReplica('none')])
  node.cluster.node(0).pause()
  try {
    const all = Array.from({ length: TIMED_OUT_MAX }, () => own.find('none'))
    const reads = await Promise.allSettled(all)
    const errors = reads.map((read) => ('reason' in read ? String(read.reason) : 'found'))
    const incomplete = 'StoreError: Cassandra did not complete the statement (majority-read)'
    expect([...new Set(errors)]).toEqual([incomplete])
    await expect(own.find('none')).rejects.toMatchObject({
      message: 'too many statements timed out and have no response yet (majority-read)',
      outcome: 'not-done',
    })
    await expect(own.findOnReplica('none')).rejects.toThrow('statement (replica-read)')
    await sleep(NODE_CHECK_MS)
  } finally {
    node.cluster.node(0).resume()
  }
  await waitFor('a response', () => responds(own))
  expect(states).toEqual(['up'])
  await cassandra.close()
})

test('requests to a killed node fail fast; clients reconnect after its restart', async () => {
  const { cassandra, own, states } = await openOwn()
  expect(await own.find('none')).toBeUndefined()
  await node.cluster.node(0).kill()
  await waitFor('the client to report the node as down', () => !cassandra.isUp())
  await expect(own.find('none')).rejects.toThrow(StoreError)
  await expect(own.insertIfAbsent(sampleLink())).rejects.toMatchObject({ outcome: 'not-done' })
  const faults: string[] = []
  const waiting = openCassandra({ ...options(), onFault: ({ kind }) => faults.push(kind) })
  await waitFor('connection attempts', () => faults.length > 1)
  await node.cluster.node(0).restart()
  expect(await withinDeadline('the first connection', waiting.ready)).toBe('up')
  await waitFor('a response', () => responds(own))
  await waitFor('the client to report the node as up', () => cassandra.isUp())
  const link = sampleLink()
  let claimed = 'not-done'
  const claim = () => own.insertIfAbsent(link).catch((err: unknown) => (err as StoreError).outcome)
  // The driver replaces the connections of a rediscovered node: it has none in the meantime.
  await waitFor('a claim that is sent', async () => (claimed = await claim()) !== 'not-done')
  expect(claimed).toBe(link.writerId)
  expect(new Set(faults)).toEqual(new Set(['unreachable']))
  expect(states.filter((state) => state !== 'no-majority')).toEqual(['up', 'down', 'up'])
  await Promise.all([cassandra.close(), waiting.close()])
})
