// The contract of the Kubernetes API: what src/kube relies on, through its own client. Independent
// of the servers, which kube-api.test.ts lists.
import { describe, expect, test } from '@jest/globals'
import type { RefillStep } from '../../src/codes/observed-state.ts'
import { applyStatus, applyStep } from '../../src/kube/code-pool/apply.ts'
import type { CodePoolStatus } from '../../src/kube/code-pool/code-pool.ts'
import {
  isProblem,
  JOB_SELECTOR,
  jobNameOf,
  JOBS,
  parseTemplate,
  poolUidOf,
  trimJob,
} from '../../src/kube/code-pool/refill-jobs.ts'
import { createEventRecorder } from '../../src/kube/events.ts'
import type { KubeError } from '../../src/kube/kube-error.ts'
import { type KubeObject, pathOf } from '../../src/kube/objects.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { quietLog } from '../kit/kube/kube-watcher.ts'
import { TEMPLATE } from '../kit/kube/pool-keeper.ts'
import { waitFor } from '../kit/wait-for.ts'
import { createPools, namesOf, type OpenedKubeApi, statusOf } from './kube-api-use.ts'
import { defineWatches } from './kube-api-watches.ts'
import { openCase } from './open-case.ts'

/** An API server that the contract is run on. */
export interface KubeApiCase {
  readonly name: string
  readonly open: () => Promise<OpenedKubeApi>
}

const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' } as const
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' } as const
const { signal } = new AbortController()

const failure = (status: number, reason: string) => expect.objectContaining({ status, reason })

/** Defines the tests of one server. */
export function defineKubeApiTests({ name, open }: KubeApiCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    defineObjects(opened)
    defineLists(opened)
    defineStatus(opened)
    defineLeases(opened)
    defineJobsAndEvents(opened)
    defineWatches(opened)
  })
}

function defineObjects(opened: () => OpenedKubeApi): void {
  test('an object is created once, and is returned with the metadata of the server', async () => {
    const pools = await createPools(opened())
    const created = await pools.create('p', { a: 'b' })
    expect(created.metadata).toMatchObject({
      ...{ name: 'p', namespace: pools.namespace, generation: 1, labels: { a: 'b' } },
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      resourceVersion: expect.stringMatching(/^\d+$/),
      creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    })
    await expect(pools.create('p')).rejects.toEqual(failure(409, 'AlreadyExists'))
    expect(await pools.get('p')).toEqual(created)
    await pools.remove('p')
    const replacement = await pools.create('p')
    expect(replacement.metadata.uid).not.toBe(created.metadata.uid)
  })

  test('a missing object is 404 NotFound for every method', async () => {
    const pools = await createPools(opened())
    const pool = await pools.create('p')
    await pools.remove('p')
    const missing = failure(404, 'NotFound')
    await expect(pools.get('p')).rejects.toEqual(missing)
    await expect(pools.change('p', {})).rejects.toEqual(missing)
    await expect(pools.remove('p')).rejects.toEqual(missing)
    await expect(applyStatus(pools.api, { pool, status: {}, signal })).rejects.toEqual(missing)
  })

  test('a change of the spec increments the generation; no change keeps the version', async () => {
    const pools = await createPools(opened())
    await pools.create('p')
    const changed = await pools.change('p', { spec: { target: 6000 } })
    expect(changed).toMatchObject({ metadata: { generation: 2 }, spec: { target: 6000 } })
    expect(await pools.change('p', { spec: { target: 6000 } })).toEqual(changed)
    const labelled = await pools.change('p', { metadata: { labels: { a: 'b' } } })
    expect(labelled.metadata.generation).toBe(2)
    expect(labelled.metadata.resourceVersion).not.toBe(changed.metadata.resourceVersion)
  })
}

function defineLists(opened: () => OpenedKubeApi): void {
  test('the pages of a list show one version, and a watch from it the later changes', async () => {
    const pools = await createPools(opened())
    for (const name of ['a', 'b', 'c', 'd', 'e']) await pools.create(name)
    const first = await pools.list({ limit: '2' })
    const version = first.metadata.resourceVersion
    await pools.create('bb')
    await pools.remove('e')
    const token = first.metadata.continue ?? ''
    const second = await pools.list({ limit: '2', continue: token })
    const third = await pools.list({ limit: '2', continue: second.metadata.continue ?? '' })
    const names = [first, second, third].map(({ items }) => namesOf(items))
    expect(names).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    expect([second.metadata.resourceVersion, third.metadata.resourceVersion]).toEqual([
      version,
      version,
    ])
    expect(third.metadata.continue ?? '').toBe('')
    expect(namesOf((await pools.list()).items)).toEqual(['a', 'b', 'bb', 'c', 'd'])
    const watch = await pools.watch({ resourceVersion: version })
    await waitFor('the changes', () => watch.events.length === 2)
    expect(watch.summary()).toEqual(['ADDED bb', 'DELETED e'])
    await watch.stop()
  })

  test('a compacted version is 410 Expired, for a page and for a watch', async () => {
    const pools = await createPools(opened())
    const { expired } = opened()
    const list = pools.list({ limit: '2', continue: expired.continue })
    await expect(list).rejects.toEqual(failure(410, 'Expired'))
    const watch = await pools.watch({ resourceVersion: expired.version })
    await watch.closed
    expect(watch.events).toMatchObject([
      { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } },
    ])
  })
}

function defineStatus(opened: () => OpenedKubeApi): void {
  test('a status is applied only to the version that it was built from', async () => {
    const pools = await createPools(opened())
    const pool = await pools.create('p')
    const applied = await applyStatus(pools.api, { pool, status: statusOf({}), signal })
    expect(applied).toMatchObject({ spec: pool.spec, status: statusOf({}) })
    expect(applied.metadata.generation).toBe(1)
    const stale = applyStatus(pools.api, { pool, status: statusOf({ level: 1 }), signal })
    await expect(stale).rejects.toEqual(failure(409, 'Conflict'))
    expect((await pools.get('p')).status).toEqual(statusOf({}))
  })

  test('an applied status replaces the previous one; an equal one changes nothing', async () => {
    const pools = await createPools(opened())
    const time = '2026-01-01T00:00:00Z'
    const refill = { refill: 1, job: 'j', inputs: 'i', startedAt: time, finishedAt: time }
    const failed = { ...refill, outcome: 'Failed', reason: 'R', message: 'm' } as const
    const condition = {
      status: 'True',
      reason: 'R',
      message: '',
      lastTransitionTime: time,
    } as const
    const ready = { type: 'Ready', ...condition }
    const apply = async (status: CodePoolStatus) => {
      const pool = await pools.get('p')
      return applyStatus(pools.api, { pool, status, signal })
    }
    await pools.create('p')
    const conditions = [ready, { type: 'Degraded', ...condition }]
    await apply(statusOf({ level: 5, lastRefill: failed, conditions }))
    const lastRefill = { ...refill, outcome: 'Succeeded' } as const
    const next = statusOf({ lastRefill, conditions: [ready] })
    const applied = await apply(next)
    expect(applied).toHaveProperty('status', next)
    const { resourceVersion } = (await apply(next)).metadata
    expect(resourceVersion).toBe(applied.metadata.resourceVersion)
  })
}

const leaseOf = (namespace: string, holderIdentity: string, resourceVersion?: string) => ({
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  metadata: { name: 'l', namespace, resourceVersion },
  spec: {
    holderIdentity,
    leaseDurationSeconds: 15,
    renewTime: '2026-01-01T00:00:00.123456Z',
    leaseTransitions: 0,
  },
})

/** The results of concurrent writes, sorted. */
async function resultsOf(writes: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(writes)
  return settled
    .map((one) => (one.status === 'fulfilled' ? 'written' : (one.reason as KubeError).reason))
    .sort()
}

interface Lease extends KubeObject {
  readonly spec: { readonly holderIdentity: string }
}

function defineLeases(opened: () => OpenedKubeApi): void {
  const useLease = async () => {
    const { api, namespace } = await createPools(opened())
    const path = pathOf(LEASES, { namespace, name: 'l' })
    const call = async (method: 'POST' | 'PUT', holder: string, version?: string) => {
      const at = method === 'POST' ? pathOf(LEASES, { namespace }) : path
      const body = leaseOf(namespace, holder, version)
      const written = (await api.call({ method, path: at, body })) as KubeObject
      expect(written).toMatchObject({ spec: body.spec })
      return written.metadata.resourceVersion
    }
    return {
      create: (holder: string) => call('POST', holder),
      update: (holder: string, version: string) => call('PUT', holder, version),
      remove: () => api.call({ method: 'DELETE', path }),
      read: () => api.call({ method: 'GET', path }),
    }
  }

  test('of concurrent writes of a Lease one succeeds; an equal one keeps its version', async () => {
    const lease = await useLease()
    const creating = ['a', 'b', 'c'].map((holder) => lease.create(holder))
    expect(await resultsOf(creating)).toEqual(['AlreadyExists', 'AlreadyExists', 'written'])
    const version = await Promise.any(creating)
    const updating = ['d', 'e', 'f'].map((holder) => lease.update(holder, version))
    expect(await resultsOf(updating)).toEqual(['Conflict', 'Conflict', 'written'])
    await expect(lease.update('g', version)).rejects.toEqual(failure(409, 'Conflict'))
    const current = await Promise.any(updating)
    const held = (await lease.read()) as Lease
    expect(held.metadata.resourceVersion).toBe(current)
    expect(await lease.update(held.spec.holderIdentity, current)).toBe(current)
    expect(await lease.update('g', current)).not.toBe(current)
  })

  test('a renewal of a deleted Lease creates it, once', async () => {
    const lease = await useLease()
    const version = await lease.create('a')
    await lease.remove()
    const writes = [lease.update('a', version), lease.update('b', version)]
    expect(await resultsOf(writes)).toEqual(['Conflict', 'written'])
    await expect(lease.create('c')).rejects.toEqual(failure(409, 'AlreadyExists'))
  })
}

function defineJobsAndEvents(opened: () => OpenedKubeApi): void {
  test('a refill Job is created once, selected by its label, and deleted', async () => {
    const pools = await createPools(opened())
    const { api, namespace } = pools
    const pool = await pools.create('p')
    const template = parseTemplate(TEMPLATE)
    if (isProblem(template)) throw new Error(template.message)
    const context = { pool, storeName: 's', owner: 'o', template, signal }
    const deps = { api, ownPool: () => Promise.resolve(true) }
    const apply = (step: RefillStep) => applyStep(deps, step, context)
    const job = jobNameOf(pool, 1)
    const path = pathOf(JOBS, { namespace, name: job })
    const list = async () => {
      const query = { labelSelector: JOB_SELECTOR }
      const at = pathOf(JOBS, { namespace })
      return ((await api.call({ method: 'GET', path: at, query })) as { items: KubeObject[] }).items
    }
    await apply({ kind: 'start', refill: 1, fillTo: 5000 })
    const created = (await api.call({ method: 'GET', path })) as KubeObject
    expect(trimJob(created)).toMatchObject({ refill: 1, state: 'running', isReady: false })
    expect(poolUidOf(created)).toBe(pool.metadata.uid)
    await apply({ kind: 'start', refill: 1, fillTo: 5000 })
    expect(await list()).toMatchObject([{ metadata: { name: job, uid: created.metadata.uid } }])
    await apply({ kind: 'remove', job })
    await apply({ kind: 'remove', job })
    await expect(api.call({ method: 'GET', path })).rejects.toEqual(failure(404, 'NotFound'))
    expect(await list()).toEqual([])
  })

  test('an event of a CodePool is selected by its uid and type, with its count', async () => {
    const { api, namespace } = await createPools(opened())
    const times = { nowMs: 1_000_000 }
    const events = createEventRecorder({
      ...{ api, controller: 'curtail.dev/controller', instance: 'i' },
      nowMs: () => times.nowMs,
      wallMs: Date.now,
      metrics: createMetrics(),
      log: quietLog,
      mayWrite: () => true,
    })
    const emit = (uid: string, type: 'Normal' | 'Warning') => {
      const regarding = { apiVersion: 'a/v1', kind: 'K', namespace, name: 'o', uid }
      events.emit({ regarding, type, reason: 'R', action: 'A', note: 'one' })
    }
    for (const uid of ['u', 'v']) emit(uid, 'Warning')
    emit('u', 'Normal')
    emit('u', 'Warning')
    times.nowMs += 61_000
    emit('u', 'Warning')
    await events.flush()
    const query = { fieldSelector: 'regarding.uid=u,type=Warning', limit: '50' }
    const path = pathOf(EVENTS, { namespace })
    const { items } = (await api.call({ method: 'GET', path, query })) as { items: unknown[] }
    expect(items).toMatchObject([
      {
        regarding: { uid: 'u' },
        ...{ type: 'Warning', note: 'one', series: { count: 3 } },
        eventTime: expect.stringMatching(/\.\d{6}Z$/),
      },
    ])
  })
}
