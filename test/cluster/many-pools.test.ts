// A thousand pools, more than a store has numbers for: without changes the controller writes only
// its Lease, each of many changes is reconciled within the deadline, and memory stays bounded.
// STEADY_SECONDS=600 npm run test:cluster -- many-pools watches the steady state for longer.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client } from 'cassandra-driver'
import type { KubeApi } from '../../src/kube/api.ts'
import { CODE_POOLS, type CodePool } from '../../src/kube/code-pool/code-pool.ts'
import { JOB_SELECTOR } from '../../src/kube/code-pool/refill-jobs.ts'
import { type KubeObject, pathOf } from '../../src/kube/objects.ts'
import { waitFor } from '../kit/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import { CODE_SECRET } from './code-pools.ts'
import { readAuditedCalls, openKubeApi, writeCalls } from './kube-api.ts'
import { findPid, readLeader, residentBytes } from './leader.ts'
import { ensureRelease, FULL_NAME, INSTALL_MS_MAX, podsOf, RELEASE } from './release.ts'

/** The total number of pools, including those of the release and of other tests. */
const POOLS = 1000
const STEADY_MS = Number(process.env['STEADY_SECONDS'] ?? 60) * 1000
const TEST_MS_MAX = 5 * 60_000 + STEADY_MS
const WAIT_MS_MAX = 4 * 60_000
const RECONCILED_MS_MAX = 30_000
const RESIDENT_BYTES_MAX = 200e6
const CONCURRENCY = 16
const LABELS = { 'curtail.dev/test': 'many-pools' }
const selected = { labelSelector: 'curtail.dev/test=many-pools' }

/** A full pool that a CodePool owns. */
const INSERT_KEPT = `INSERT INTO code_pools
  (pool, pool_number, owner, minted, claimed, low_water, target, secret_fingerprint)
  VALUES (?, ?, ?, 5, 0, 2000, 5000, 'none')`
const path = pathOf(CODE_POOLS, { namespace: RELEASE })

/** The names of the pools that this file creates, and of their CodePools. */
let names: readonly string[] = []
let api: KubeApi
let close: () => void
let cassandra: Client

beforeAll(async () => {
  await ensureRelease()
  const opened = await openKubeApi()
  api = opened.api
  close = opened.close
  const args = ['pod', `${FULL_NAME}-cassandra-0`, '--namespace', RELEASE]
  const { status } = await getObject<{ status: { podIP: string } }>(...args)
  const contactPoints = [status.podIP]
  cassandra = new Client({ contactPoints, localDataCenter: 'datacenter1', keyspace: 'curtail' })
  const existing = await cassandra.execute('SELECT pool FROM code_pools')
  names = Array.from({ length: POOLS - existing.rowLength }, (_, i) => `many-${i + 1}`)
}, INSTALL_MS_MAX)

afterAll(async () => {
  await api.call({ method: 'DELETE', path, query: selected, msMax: TEST_MS_MAX })
  await forEachName((name) => {
    return cassandra.execute('DELETE FROM code_pools WHERE pool = ?', [name], { prepare: true })
  })
  await cassandra.shutdown()
  close()
}, TEST_MS_MAX)

/** Calls `act` for each pool, with at most CONCURRENCY calls in flight. */
async function forEachName(act: (name: string, i: number) => Promise<unknown>): Promise<void> {
  const left = names.entries()
  const work = async () => {
    for (const [i, name] of left) await act(name, i)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
}

async function listPools(): Promise<readonly CodePool[]> {
  const list = await api.call({ method: 'GET', path, query: { ...selected, resourceVersion: '0' } })
  return (list as { items: readonly CodePool[] }).items
}

function isSteady({ status, metadata }: CodePool): boolean {
  const reasons = (status?.conditions ?? []).map(({ reason }) => reason).sort()
  const isCurrent = status?.observedGeneration === metadata.generation
  return isCurrent && reasons.join() === 'AsExpected,LevelSufficient,NotNeeded'
}

/** Resident memory of each controller, the leader first; checks that each is below its bound. */
async function checkMemory(): Promise<readonly string[]> {
  const leader = (await readLeader())?.pod ?? ''
  const pods = (await podsOf('controller')).filter((pod) => pod !== leader)
  const sizes: string[] = []
  for (const pod of [leader, ...pods]) {
    const bytes = await residentBytes(await findPid(pod))
    expect(bytes).toBeLessThan(RESIDENT_BYTES_MAX)
    sizes.push(`${(bytes / 1e6).toFixed(0)} MB`)
  }
  return sizes
}

test(
  'a thousand pools reach a steady state',
  async () => {
    const startedMs = performance.now()
    await forEachName(async (name, i) => {
      const values = [name, 1000 + i, `${RELEASE}/${name}`]
      await cassandra.execute(INSERT_KEPT, values, { prepare: true })
    })
    const { apiVersion, kind } = CODE_POOLS
    await forEachName((name) => {
      const metadata = { name, labels: LABELS }
      const spec = { lowWater: 2000, target: 5000, storeName: name, codeSecret: CODE_SECRET }
      return api.call({ method: 'POST', path, body: { apiVersion, kind, metadata, spec } })
    })
    const createdMs = performance.now()
    await waitFor(
      'all pools to be steady',
      async () => (await listPools()).filter(isSteady).length === names.length,
      WAIT_MS_MAX,
    )
    const [creating, settling] = [createdMs - startedMs, performance.now() - createdMs]
    process.stdout.write(
      `created in ${creating.toFixed(0)} ms, steady ${settling.toFixed(0)} ms later\n`,
    )
    process.stdout.write(`resident: ${(await checkMemory()).join(', ')}\n`)
  },
  TEST_MS_MAX,
)

/** Whether the leader has annotated pods with the version of the lists for the last time. */
async function areListsAnnounced(): Promise<boolean> {
  const { items } = await getObject<{ items: readonly KubeObject[] }>('pods', '-n', RELEASE)
  const values = items.flatMap(({ metadata }) => metadata.annotations?.['curtail.dev/lists'] ?? [])
  return values.length > 0 && values.every((value) => value.endsWith('.final'))
}

test(
  `in the steady state only the Lease is written for ${STEADY_MS / 1000} s`,
  async () => {
    // The Jobs of other tests would cause writes when their TTL expires.
    await kubectl('delete', 'jobs', '-l', JOB_SELECTOR, '--namespace', RELEASE)
    // Limiters that other tests have stopped count for up to 90 s; then the statuses change.
    const programmed = ['wait', '--for=condition=Programmed', '--timeout=120s']
    await kubectl(...programmed, 'ratelimitpolicies', '--all', '--namespace', RELEASE)
    // A new leader annotates the pods three times, the last time after 35 s.
    await waitFor('the last annotation of the pods', areListsAnnounced, WAIT_MS_MAX)
    const lastWrite = async (sinceMs: number) => writeCalls(await readAuditedCalls(sinceMs)).at(-1)
    await waitFor(
      'the last write to be over',
      async () => (await lastWrite(Date.now() - 10_000)) === undefined,
      WAIT_MS_MAX,
    )
    const startedMs = Date.now()
    const isOver = () => Date.now() - startedMs > STEADY_MS
    await waitFor('the observation to be over', isOver, STEADY_MS + 1000)
    const calls = await readAuditedCalls(startedMs)
    expect(writeCalls(calls)).toEqual([])
    const renewals = calls.filter(({ verb }) => verb === 'update').length
    expect(renewals).toBeGreaterThan(STEADY_MS / 4000)
    const summary = [`${renewals} renewals and no other write in ${STEADY_MS / 1000} s`]
    process.stdout.write(`${summary.concat(await checkMemory()).join(', ')}\n`)
  },
  TEST_MS_MAX,
)

test(
  'each of a thousand concurrent changes is reconciled within 30 s',
  async () => {
    const changedMs = new Map<string, number>()
    const tookMs = new Map<string, number>()
    const allReconciled = async () => {
      for (const { metadata, status } of await listPools()) {
        const sinceMs = changedMs.get(metadata.name)
        const isReconciled = metadata.generation === 2 && status?.observedGeneration === 2
        if (isReconciled && sinceMs !== undefined && !tookMs.has(metadata.name))
          tookMs.set(metadata.name, performance.now() - sinceMs)
      }
      return tookMs.size === names.length
    }
    const changing = forEachName(async (name, i) => {
      changedMs.set(name, performance.now())
      await api.call({
        method: 'PATCH',
        path: `${path}/${name}`,
        body: { spec: { headroomHours: 1 + (i % 24) } },
        contentType: 'application/merge-patch+json',
      })
    })
    await waitFor('every change to be reconciled', allReconciled, WAIT_MS_MAX)
    await changing
    const worstMs = Math.max(...tookMs.values())
    process.stdout.write(`the slowest of ${tookMs.size} took ${worstMs.toFixed(0)} ms\n`)
    expect(worstMs).toBeLessThan(RECONCILED_MS_MAX)
    process.stdout.write(`resident: ${(await checkMemory()).join(', ')}\n`)
  },
  TEST_MS_MAX,
)
