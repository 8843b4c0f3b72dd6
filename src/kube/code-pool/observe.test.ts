// The observed state of a CodePool: which of several owns the pool, and which Jobs and pods are
// read from the API server because no cache can have them.
import { expect, test } from '@jest/globals'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import type { ObjectMeta } from '../objects.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'
import { observe, type ObserveDeps } from './observe.ts'
import { jobNameOf, type RefillJob } from './refill-jobs.ts'

const NOW = Date.parse('2000-01-01T01:00:00Z')
const { signal } = new AbortController()

function poolOf(
  name: string,
  metadata: Partial<ObjectMeta> = {},
  status: CodePoolStatus = {},
): CodePool {
  return {
    metadata: {
      ...{ name, namespace: 'n', uid: `uid-${name}`, resourceVersion: '1' },
      creationTimestamp: '2000-01-01T00:00:00Z',
      ...metadata,
    },
    spec: {
      ...{ lowWater: 2000, target: 5000, paused: false, storeName: 'shared' },
      codeSecret: { name: 's', key: 'secret' },
    },
    status,
  }
}

function jobOf(more: Partial<RefillJob> = {}): RefillJob {
  return {
    metadata: { name: 'j', namespace: 'n', uid: 'u', resourceVersion: '1' },
    ...{ refill: 1, inputs: 'a', state: 'running', startedMs: NOW - 10_001, finishedMs: null },
    ...{ isReady: false, failure: null },
    ...more,
  }
}

/** Observes `pool`; records every API call and responds with `respond`. */
async function observed(
  pool: CodePool,
  given: {
    pools?: readonly CodePool[]
    jobs?: readonly RefillJob[]
    respond?: (path: string) => unknown
  } = {},
) {
  const paths: string[] = []
  const call: KubeApi['call'] = ({ path }) => {
    paths.push(path.slice(path.lastIndexOf('/n/') + 3))
    return Promise.resolve().then(() => given.respond?.(path) ?? { items: [] })
  }
  const deps: ObserveDeps = {
    api: {
      call,
      async *lines() {
        yield await Promise.resolve('')
      },
    },
    jobs: { listBy: () => given.jobs ?? [] },
    pools: { listBy: (name) => (name === 'shared' ? (given.pools ?? [pool]) : []) },
    template: () => ({ reason: 'TemplateMissing', message: '' }),
    ...{ ownerPrefix: 'c/', wallMs: () => NOW },
  }
  return { ...(await observe(deps, pool, signal)), paths }
}

const olderOwners = async (pools: readonly CodePool[]) =>
  Promise.all(pools.map(async (pool) => (await observed(pool, { pools })).conflictingOwner))

test('of several CodePools with one pool the oldest owns it, however they are listed', async () => {
  const old = poolOf('b')
  const young = poolOf('a', { creationTimestamp: '2000-01-01T00:00:01Z' })
  expect(await olderOwners([old, young])).toEqual([null, 'n/b'])
  expect(await olderOwners([young, old])).toEqual(['n/b', null])
  expect(await olderOwners([old])).toEqual([null])
})

test('of two CodePools created in the same second the uid decides', async () => {
  const [one, other] = [poolOf('a', { uid: '2' }), poolOf('b', { uid: '1' })]
  expect(await olderOwners([one, other])).toEqual(['n/b', null])
})

test('the owner name has the cluster prefix; the annotation allows a replacement', async () => {
  const annotations = { 'curtail.dev/replaces-owner': 'n/q' }
  expect(await observed(poolOf('p', { annotations }))).toMatchObject({
    self: 'c/n/p',
    mayReplace: 'n/q',
  })
  expect(await observed(poolOf('p'))).toMatchObject({ mayReplace: null })
})

test('only a started Job that is not in the cache is read', async () => {
  const pool = poolOf('p', {}, { refills: 2 })
  const name = jobNameOf(pool, 2)
  const onWire = { metadata: { name, namespace: 'n', annotations: { 'curtail.dev/refill': '2' } } }
  const respond = (path: string) => (path.endsWith(name) ? onWire : { items: [] })
  const missing = await observed(pool, { jobs: [jobOf({ isReady: true })], respond })
  expect(missing.jobs.map(({ refill }) => refill)).toEqual([1, 2])
  expect(missing.paths[0]).toBe(`jobs/${name}`)
  const cached = await observed(pool, { jobs: [jobOf({ refill: 2, isReady: true })], respond })
  expect([cached.jobs.map(({ refill }) => refill), cached.paths]).toEqual([[2], []])
})

test('a Job that the API server does not have is omitted; other failures are thrown', async () => {
  const rejecting = (status: number) => () => {
    throw new KubeError('no', { status, reason: 'R' })
  }
  const pool = poolOf('p', {}, { refills: 2 })
  expect((await observed(pool, { respond: rejecting(404) })).jobs).toEqual([])
  await expect(observed(pool, { respond: rejecting(500) })).rejects.toMatchObject({ status: 500 })
})

const reported: CodePoolStatus = {
  conditions: [
    {
      ...{ type: 'Degraded', status: 'True', reason: 'PodNotStarted', message: 'before' },
      ...{ lastTransitionTime: '', observedGeneration: 1 },
    },
  ],
}

test.each<readonly [string, Partial<RefillJob>, string | null]>([
  ['is starting for more than 10 s', {}, 'before'],
  ['is starting for 10 s', { startedMs: NOW - 10_000 }, null],
  ['is ready', { isReady: true }, null],
])(
  'the reported pod problem is kept only if a pod starts too slowly; the Job %s: %j',
  async (_name, job, message) => {
    const { jobs, paths } = await observed(poolOf('p', {}, reported), { jobs: [jobOf(job)] })
    expect(jobs[0]?.problem?.message ?? null).toBe(message)
    expect(paths).toEqual(message === null ? [] : ['pods'])
  },
)

test('pods of a failed Job are read until its outcome is recorded', async () => {
  const failed = jobOf({ state: 'failed', finishedMs: NOW, failure: 'BackoffLimitExceeded: ' })
  const unrecorded = await observed(poolOf('p'), { jobs: [failed] })
  expect([unrecorded.paths, unrecorded.jobs[0]?.problem?.message]).toEqual([
    ['pods'],
    failed.failure,
  ])
  const lastRefill = {
    ...{ refill: 1, job: 'j', inputs: 'a', outcome: 'Failed' as const },
    ...{ startedAt: '2000-01-01T00:00:00Z', finishedAt: '2000-01-01T00:00:00Z' },
  }
  const recorded = await observed(poolOf('p', {}, { refills: 1, lastRefill }), { jobs: [failed] })
  expect(recorded.paths).toEqual([])
})
