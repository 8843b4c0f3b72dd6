// What is observed of a CodePool: which of several has the pool, and which of its Jobs and pods are
// read from the API server because no cache can know them.
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

/** Observes `pool`; every call of the API server is noted, and answered by `answer`. */
async function seen(
  pool: CodePool,
  given: {
    pools?: readonly CodePool[]
    jobs?: readonly RefillJob[]
    answer?: (path: string) => unknown
  } = {},
) {
  const paths: string[] = []
  const call: KubeApi['call'] = ({ path }) => {
    paths.push(path.slice(path.lastIndexOf('/n/') + 3))
    return Promise.resolve().then(() => given.answer?.(path) ?? { items: [] })
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
    levels: { get: () => ({ kind: 'absent' }) },
    template: () => ({ reason: 'TemplateMissing', message: '' }),
    ...{ ownerPrefix: 'c/', wallMs: () => NOW },
  }
  return { ...(await observe(deps, pool, signal)), paths }
}

const rivals = async (pools: readonly CodePool[]) =>
  Promise.all(pools.map(async (pool) => (await seen(pool, { pools })).rival))

test('of several CodePools of one pool the oldest has no rival, whatever their order', async () => {
  const old = poolOf('b')
  const young = poolOf('a', { creationTimestamp: '2000-01-01T00:00:01Z' })
  expect(await rivals([old, young])).toEqual([null, 'n/b'])
  expect(await rivals([young, old])).toEqual(['n/b', null])
  expect(await rivals([old])).toEqual([null])
})

test('of two CodePools of the same second one has the pool, by the uid', async () => {
  const [one, other] = [poolOf('a', { uid: '2' }), poolOf('b', { uid: '1' })]
  expect(await rivals([one, other])).toEqual(['n/b', null])
})

test('a CodePool owns by the cluster’s name, and replaces what its annotation names', async () => {
  const annotations = { 'curtail.dev/replaces-owner': 'n/q' }
  expect(await seen(poolOf('p', { annotations }))).toMatchObject({
    self: 'c/n/p',
    mayReplace: 'n/q',
  })
  expect(await seen(poolOf('p'))).toMatchObject({ mayReplace: null })
})

test('a Job that was begun and is not in the cache is read, and only that', async () => {
  const pool = poolOf('p', {}, { refills: 2 })
  const name = jobNameOf(pool, 2)
  const onWire = { metadata: { name, namespace: 'n', annotations: { 'curtail.dev/refill': '2' } } }
  const answer = (path: string) => (path.endsWith(name) ? onWire : { items: [] })
  const missing = await seen(pool, { jobs: [jobOf({ isReady: true })], answer })
  expect(missing.jobs.map(({ refill }) => refill)).toEqual([1, 2])
  expect(missing.paths[0]).toBe(`jobs/${name}`)
  const cached = await seen(pool, { jobs: [jobOf({ refill: 2, isReady: true })], answer })
  expect([cached.jobs.map(({ refill }) => refill), cached.paths]).toEqual([[2], []])
})

test('a Job that the API server does not have is absent; another failure is thrown', async () => {
  const refused = (status: number) => () => {
    throw new KubeError('no', { status, reason: 'R' })
  }
  const pool = poolOf('p', {}, { refills: 2 })
  expect((await seen(pool, { answer: refused(404) })).jobs).toEqual([])
  await expect(seen(pool, { answer: refused(500) })).rejects.toMatchObject({ status: 500 })
})

const told: CodePoolStatus = {
  conditions: [
    {
      ...{ type: 'Degraded', status: 'True', reason: 'PodNotStarted', message: 'before' },
      ...{ lastTransitionTime: '', observedGeneration: 1 },
    },
  ],
}

test.each<readonly [string, Partial<RefillJob>, string | null]>([
  ['begins since more than 10 s', {}, 'before'],
  ['begins since 10 s', { startedMs: NOW - 10_000 }, null],
  ['is ready', { isReady: true }, null],
])('what was reported of a pod stands while the Job %s: %j', async (_name, job, message) => {
  const { jobs, paths } = await seen(poolOf('p', {}, told), { jobs: [jobOf(job)] })
  expect(jobs[0]?.trouble?.message ?? null).toBe(message)
  expect(paths).toEqual(message === null ? [] : ['pods'])
})

test('pods of a failed Job are read until its end is recorded', async () => {
  const failed = jobOf({ state: 'failed', finishedMs: NOW, failure: 'BackoffLimitExceeded: ' })
  const news = await seen(poolOf('p'), { jobs: [failed] })
  expect([news.paths, news.jobs[0]?.trouble?.message]).toEqual([['pods'], failed.failure])
  const lastRefill = {
    ...{ refill: 1, job: 'j', inputs: 'a', outcome: 'Failed' as const },
    ...{ startedAt: '2000-01-01T00:00:00Z', finishedAt: '2000-01-01T00:00:00Z' },
  }
  const known = await seen(poolOf('p', {}, { refills: 1, lastRefill }), { jobs: [failed] })
  expect(known.paths).toEqual([])
})
