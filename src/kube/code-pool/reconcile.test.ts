// One reconcile of a CodePool. Tests each guard separately: a fresh level before a Job is created,
// the owner in the store, an older CodePool, and requests that the API server rejects.
import { expect, test } from '@jest/globals'
import type { ObservedStore } from '../../codes/observed-state.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'
import { createReconcile, type ReconcileDeps } from './reconcile.ts'
import { parseTemplate, type RefillJob } from './refill-jobs.ts'

const NOW = Date.parse('2000-01-01T01:00:00Z')
const { signal } = new AbortController()
const metadata = { name: 'p', namespace: 'n', uid: '2', resourceVersion: '7' }
const spec = {
  ...{ lowWater: 2000, target: 5000, paused: false, storeName: 'shared' },
  codeSecret: { name: 's', key: 'secret' },
}
const creationTimestamp = '2000-01-01T00:00:00Z'
const pool: CodePool = { metadata: { ...metadata, creationTimestamp }, spec }
const older: CodePool = { metadata: { ...pool.metadata, name: 'q', uid: '1' }, spec }
const row = (level: number, owner: string | null = 'n/p'): ObservedStore => ({
  ...{ kind: 'present', level, rate: 0, owner, lowWater: 2000, target: 5000 },
})

interface Given {
  readonly pool?: CodePool | undefined
  readonly pools?: readonly CodePool[]
  readonly cached?: CodePool
  /** The cached level, and the level after a refresh; `undefined` if the refresh fails. */
  readonly levels: readonly [ObservedStore, ObservedStore | undefined]
  readonly isOwned?: boolean
  readonly jobs?: readonly RefillJob[]
  /** Response statuses per method, instead of 200. */
  readonly statuses?: Readonly<Record<string, number>>
  /** @default a signal that is not aborted */
  readonly stopping?: AbortSignal
}

/** Runs a reconcile; returns its calls, events, status and result. */
async function reconcile(given: Given) {
  const steps: string[] = []
  const events: string[] = []
  const warnings: unknown[] = []
  let status: CodePoolStatus = {}
  let level: ObservedStore = given.levels[0]
  const api: KubeApi = {
    call({ method, body }) {
      steps.push(method)
      const code = given.statuses?.[method]
      if (code !== undefined)
        return Promise.reject(new KubeError('rejected', { status: code, reason: 'R' }))
      if (method === 'PATCH') status = (body as { status: CodePoolStatus }).status
      return Promise.resolve({ items: [], metadata: { ...metadata, resourceVersion: '8' } })
    },
    async *lines() {
      yield await Promise.resolve('')
    },
  }
  const current = 'pool' in given ? given.pool : pool
  const deps: ReconcileDeps = {
    ...{ api, ownerPrefix: '', wallMs: () => NOW, metrics: createMetrics() },
    poolsIn: () => ({
      get: () => (steps.includes('PATCH') ? (given.cached ?? current) : current),
      put: ({ metadata: { resourceVersion } }) => steps.push(`cache ${resourceVersion}`),
    }),
    jobsIn: () => ({ listBy: () => given.jobs ?? [] }),
    pools: { listBy: () => given.pools ?? [pool] },
    levels: {
      get: () => level,
      refresh() {
        steps.push('refresh')
        level = given.levels[1] ?? level
        return Promise.resolve(given.levels[1] !== undefined)
      },
      start: () => ({ trigger: () => undefined, stop: () => Promise.resolve() }),
      firstRead: Promise.resolve(),
    },
    template: () => parseTemplate('spec: { containers: [{ name: refill, image: i }] }'),
    ownPool() {
      steps.push('own')
      return Promise.resolve(given.isOwned ?? true)
    },
    events: { emit: ({ reason }) => events.push(reason), flush: () => Promise.resolve() },
    log: { info: () => undefined, warn: (fields: unknown) => warnings.push(fields) },
  }
  const reconciling = createReconcile(deps)('n/p', given.stopping ?? signal)
  const outcome = await reconciling.catch((error: unknown) => error)
  const degraded = status.conditions?.find(({ type }) => type === 'Degraded')
  return { steps, events, status, outcome, degraded, warnings }
}

test('a Job is created if the fresh level requires it', async () => {
  const { steps, events, outcome } = await reconcile({ levels: [row(1000), row(1999)] })
  expect(steps).toEqual(['refresh', 'POST', 'PATCH', 'cache 8'])
  expect([events, outcome]).toEqual([['RefillStarted'], { requeueAfterMs: 15_000 }])
})

test('no Job is created if the fresh level requires none, whatever the cached level', async () => {
  const { steps } = await reconcile({ levels: [row(1000), row(2000)] })
  expect(steps).toEqual(['refresh', 'PATCH', 'cache 8'])
})

test('no Job is created while the store is unavailable, even if a level is cached', async () => {
  const { steps, degraded } = await reconcile({ levels: [row(1000), undefined] })
  expect(steps).toEqual(['refresh', 'PATCH', 'cache 8'])
  expect(degraded).toMatchObject({ status: 'True', reason: 'StoreUnavailable' })
})

test('a plan without steps does not refresh the level', async () => {
  const { steps } = await reconcile({ levels: [row(5000), row(5000)] })
  expect(steps).toEqual(['PATCH', 'cache 8'])
})

test.each<readonly [string, string | null]>([
  ['has no owner', null],
  ['has us as owner', 'n/p'],
])('an older CodePool owns the pool, even if the row in the store %s', async (_name, owner) => {
  const levels = [row(0, owner), row(0, owner)] as const
  const { steps, degraded } = await reconcile({ pools: [pool, older], levels })
  expect(steps).toEqual(['PATCH', 'cache 8'])
  expect(degraded).toMatchObject({ status: 'True', reason: 'OtherOwner' })
  expect(degraded?.message).toContain('the older CodePool n/q')
})

test('the owner in the store owns the pool, even if no CodePool is older', async () => {
  const { steps, degraded } = await reconcile({ levels: [row(0, 'n/q'), row(0, 'n/q')] })
  expect(steps).toEqual(['PATCH', 'cache 8'])
  expect(degraded?.message).toContain('curtail.dev/replaces-owner=n/q')
})

test('a pool that has another owner gets no Job, and its CodePool is requeued soon', async () => {
  const levels = [row(0, null), row(0, null)] as const
  const { steps, events, status, outcome } = await reconcile({ levels, isOwned: false })
  expect(steps).toEqual(['refresh', 'own', 'refresh', 'PATCH', 'cache 8'])
  expect([events, status.refills]).toEqual([[], 0])
  expect(outcome).toEqual({ requeueAfterMs: 200 })
})

test.each([400, 403, 404, 422])('after a rejection with %i, no refill is counted', async (code) => {
  const given = { levels: [row(0), row(0)], statuses: { POST: code } } as const
  const { steps, status, degraded, outcome } = await reconcile(given)
  expect(steps).toEqual(['refresh', 'POST', 'PATCH', 'cache 8'])
  expect([status.refills, degraded?.reason]).toEqual([0, 'JobRejected'])
  expect(outcome).toMatchObject({ status: code })
})

test('a Job that may have been created is not reported as rejected', async () => {
  const { steps, outcome } = await reconcile({ levels: [row(0), row(0)], statuses: { POST: 500 } })
  expect(steps).toEqual(['refresh', 'POST'])
  expect(outcome).toMatchObject({ status: 500 })
})

/** A pool that needs a refill, with a Job that is due for removal. */
function withOldJob(): Pick<Given, 'pool' | 'jobs' | 'levels'> {
  const time = '2000-01-01T00:00:00Z'
  const times = { startedAt: time, finishedAt: time }
  const lastRefill = { refill: 1, job: 'old', inputs: 'a', outcome: 'Succeeded' as const, ...times }
  const old: RefillJob = {
    ...{ metadata: { ...metadata, name: 'old' }, refill: 1, inputs: 'a', state: 'succeeded' },
    ...{ startedMs: 0, finishedMs: 0, isReady: false, failure: null },
  }
  const used = { ...pool, status: { refills: 1, lastRefill } }
  return { pool: used, jobs: [old], levels: [row(0), row(0)] }
}

test('a rejected Job does not prevent the removal of old ones, which frees a quota', async () => {
  const { steps, outcome } = await reconcile({ ...withOldJob(), statuses: { POST: 403 } })
  expect(steps).toEqual(['refresh', 'POST', 'PATCH', 'cache 8', 'DELETE'])
  expect(outcome).toMatchObject({ status: 403 })
})

test('an old Job that cannot be deleted prevents neither a refill nor its report', async () => {
  const given = { ...withOldJob(), statuses: { DELETE: 403 } }
  const { steps, status, degraded, outcome } = await reconcile(given)
  expect(steps).toEqual(['refresh', 'POST', 'PATCH', 'cache 8', 'DELETE'])
  expect([status.refills, degraded?.reason]).toEqual([2, 'AsExpected'])
  expect(outcome).toEqual({ requeueAfterMs: 15_000 })
})

test('after the removal of an old Job, the plan decides when to reconcile next', async () => {
  const { steps, outcome, warnings } = await reconcile(withOldJob())
  expect(steps).toEqual(['refresh', 'POST', 'PATCH', 'cache 8', 'DELETE'])
  expect([outcome, warnings]).toEqual([{ requeueAfterMs: 1000 }, []])
})

test('an old Job that is not deleted is logged, except during a stop', async () => {
  const given = { ...withOldJob(), statuses: { DELETE: 403 } }
  expect((await reconcile(given)).warnings).toMatchObject([{ key: 'n/p', err: { status: 403 } }])
  expect((await reconcile({ ...given, stopping: AbortSignal.abort() })).warnings).toEqual([])
})

test('a pool with a sufficient level whose owner is not recorded is requeued soon', async () => {
  const given = { levels: [row(5000, null), row(5000, null)], isOwned: false } as const
  const { steps, status, outcome } = await reconcile(given)
  expect(steps).toEqual(['own', 'refresh', 'PATCH', 'cache 8'])
  expect([status.level, outcome]).toEqual([5000, { requeueAfterMs: 200 }])
})

test('a running Job that cannot be cancelled is not reported as rejected', async () => {
  const [old] = withOldJob().jobs ?? []
  if (old === undefined) throw new Error('there is no Job')
  const { steps, outcome } = await reconcile({
    pool: { ...pool, spec: { ...spec, paused: true } },
    jobs: [{ ...old, state: 'running', isReady: true, finishedMs: null }],
    ...{ levels: [row(5000), row(5000)], statuses: { DELETE: 403 } },
  })
  expect(steps).toEqual(['refresh', 'DELETE'])
  expect(outcome).toMatchObject({ status: 403 })
})

test.each<readonly [number, object]>([
  [409, { requeueAfterMs: 200 }],
  [404, { requeueAfterMs: 15_000 }],
])('a status update that returns %i is not a failure', async (code, outcome) => {
  const given = { levels: [row(0), row(0)], statuses: { PATCH: code } } as const
  const done = await reconcile(given)
  expect(done.outcome).toEqual(outcome)
  expect(done.steps).toEqual(['refresh', 'POST', 'PATCH'])
  if (code === 409) expect(done.events).toEqual([]) // emitted once the status is written
})

test('a status update that returns 500 is retried', async () => {
  const { outcome, events } = await reconcile({
    levels: [row(5000), undefined],
    statuses: { PATCH: 500 },
  })
  expect([outcome, events]).toEqual([expect.objectContaining({ status: 500 }), []])
})

test('a status replaces in the cache only the version that it was built from', async () => {
  const cached = { ...pool, metadata: { ...pool.metadata, resourceVersion: '9' } }
  const { steps } = await reconcile({ levels: [row(5000), undefined], cached })
  expect(steps).toEqual(['PATCH'])
})

test('an unchanged status is not written', async () => {
  const levels = [row(5000), row(5000)] as const
  const { status } = await reconcile({ levels })
  const { steps, events, outcome } = await reconcile({ pool: { ...pool, status }, levels })
  expect([steps, events, outcome]).toEqual([[], [], { requeueAfterMs: undefined }])
})

test.each([
  [0, 1, 1],
  [1, 0, 0],
  [1, 2, 1],
])('after the level %i, the level %i is reported as %i', async (before, after, reported) => {
  const paused = { ...pool, spec: { ...spec, paused: true } }
  const first = await reconcile({ pool: paused, levels: [row(before), undefined] })
  const current = { ...paused, status: first.status }
  const { status } = await reconcile({ pool: current, levels: [row(after), undefined] })
  expect(status.level ?? first.status.level).toBe(reported)
})

test('a CodePool that is missing or being deleted is ignored', async () => {
  const deletionTimestamp = creationTimestamp
  const deleting = { ...pool, metadata: { ...pool.metadata, deletionTimestamp } }
  for (const given of [undefined, deleting]) {
    const { steps, outcome } = await reconcile({ pool: given, levels: [row(0), row(0)] })
    expect([steps, outcome]).toEqual([[], {}])
  }
})
