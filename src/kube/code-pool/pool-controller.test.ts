// Which changes make the controller reconcile which CodePools. The API server is a function; time
// is simulated.
import { expect, test } from '@jest/globals'
import { leadPools, poolOf, watchPools } from '../../../test/kit/kube/pool-changes.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { KubeError } from '../kube-error.ts'

const HOUR_MS = 3_600_000
const never = () => new Promise<never>(() => undefined)
const shared = (name: string, resourceVersion: string) => {
  const pool = poolOf(name, { resourceVersion })
  return { ...pool, spec: { ...pool.spec, storeName: 'shared' } }
}

test('a new leader reconciles every CodePool, a replica on standby none', async () => {
  const { controller, scheduler, feeds, take, stopping } = watchPools({})
  await scheduler.advance(0)
  feeds.codepools.push('ADDED', poolOf('r', { resourceVersion: '2' }))
  controller.onPoolsChanged('all')
  expect(await take()).toEqual([])
  const leading = controller.lead(stopping.signal)
  expect(await take()).toEqual(['p', 'q', 'r'])
  stopping.abort()
  await leading
})

test('nothing is reconciled before the first read of the levels', async () => {
  const { promise: firstRead, resolve } = Promise.withResolvers<undefined>()
  const { first, take, stop } = await leadPools({ firstRead: firstRead.then(() => undefined) })
  expect([first, await take(10_000)]).toEqual([[], []])
  resolve(undefined)
  expect(await take()).toEqual(['p', 'q'])
  await stop()
})

test('a leader that stops before the first read reconciles nothing', async () => {
  const { stop, take, controller, feeds } = await leadPools({ firstRead: never() })
  await stop()
  controller.onPoolsChanged('all')
  feeds.codepools.push('ADDED', poolOf('r', { resourceVersion: '2' }))
  expect(await take()).toEqual([])
})

test('a change of only the status is not reconciled, other changes are', async () => {
  const { feeds, take, stop } = await leadPools()
  const change = async (metadata: object, more: object = {}) => {
    feeds.codepools.push('MODIFIED', poolOf('p', metadata, more))
    return take()
  }
  expect(await change({ resourceVersion: '2' }, { status: { level: 1 } })).toEqual([])
  const generation = 2
  expect(await change({ resourceVersion: '3', generation })).toEqual(['p'])
  expect(await change({ resourceVersion: '4', generation })).toEqual([])
  const annotated = { generation, annotations: { a: 'b' } }
  expect(await change({ resourceVersion: '5', ...annotated })).toEqual(['p'])
  const deletionTimestamp = '2000-01-01T00:00:00Z'
  expect(await change({ resourceVersion: '6', ...annotated, deletionTimestamp })).toEqual([])
  expect(await change({ resourceVersion: '7', ...annotated })).toEqual(['p']) // recreated
  await stop()
})

test('an added or deleted CodePool affects others of its pool, a changed one none', async () => {
  const pools = [shared('p', '1'), shared('q', '1'), poolOf('other')]
  const { feeds, first, take, stop } = await leadPools({ pools })
  expect(first).toEqual(['other', 'p', 'q'])
  feeds.codepools.push('ADDED', shared('r', '2'))
  expect(await take()).toEqual(['p', 'q', 'r'])
  const changed = shared('r', '3')
  const metadata = { ...changed.metadata, generation: 2 }
  feeds.codepools.push('MODIFIED', { ...changed, metadata })
  expect(await take()).toEqual(['r'])
  feeds.codepools.push('DELETED', { ...changed, metadata })
  expect(await take()).toEqual(['p', 'q'])
  await stop()
})

test('a change of a Job is reconciled by the CodePool that controls it', async () => {
  const { feeds, take, stop } = await leadPools()
  const owner = { apiVersion: 'curtail.dev/v1alpha1', kind: 'CodePool', uid: 'uid-q', name: 'q' }
  const change = async (resourceVersion: string, controller: boolean) => {
    const metadata = { name: 'j', namespace: 'n', uid: 'j', resourceVersion }
    const ownerReferences = [{ ...owner, controller }]
    feeds.jobs.push('MODIFIED', { metadata: { ...metadata, ownerReferences } })
    return take()
  }
  expect(await change('2', true)).toEqual(['q'])
  expect(await change('3', false)).toEqual([])
  await stop()
})

test('the CodePools of changed pools in the store are reconciled', async () => {
  const pools = [shared('p', '1'), shared('q', '1'), poolOf('other')]
  const { controller, take, stop } = await leadPools({ pools })
  controller.onPoolsChanged(['shared', 'unknown'])
  expect(await take()).toEqual(['p', 'q'])
  controller.onPoolsChanged('all')
  expect(await take()).toEqual(['other', 'p', 'q'])
  await stop()
})

test('each CodePool is reconciled after 10 to 11 hours without a change', async () => {
  const { scheduler, take, stop } = await leadPools()
  const ms = 10.5 * HOUR_MS
  expect(await take(ms - 1)).toEqual([])
  expect(await take(1)).toEqual(['p', 'q'])
  expect(scheduler.nowMs()).toBe(ms)
  await stop()
})

test('is synced once all resources of all namespaces are listed', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const respond = () => promise
  const { controller, scheduler, states, stopping } = watchPools({
    namespaces: ['n', 'm'],
    respond,
  })
  await scheduler.advance(0)
  expect([controller.hasSynced(), new Set(states)]).toEqual([
    false,
    new Set(['codepools in n up', 'codepools in m up']),
  ])
  resolve({ items: [], metadata: { resourceVersion: '1' } })
  await scheduler.advance(0)
  expect([controller.hasSynced(), states.includes('jobs in m up')]).toEqual([true, true])
  stopping.abort()
})

test('the metrics have the number of CodePools in each condition', async () => {
  const condition = { type: 'Ready', status: 'True', reason: 'LevelSufficient' }
  const status = { conditions: [condition] }
  const pools = [poolOf('p', {}, { status }), poolOf('q', {}, { status }), poolOf('r')]
  const { controller, scheduler, metrics, feeds, stopping } = watchPools({ pools })
  await scheduler.advance(0)
  const counts = async () => {
    controller.updateMetrics()
    return (await metrics.poolConditions.get()).values.map(({ labels, value }) => [labels, value])
  }
  expect(await counts()).toEqual([[condition, 2]])
  feeds.codepools.push('DELETED', poolOf('q', { resourceVersion: '2' }))
  await scheduler.advance(0)
  expect(await counts()).toEqual([[condition, 1]])
  stopping.abort()
})

test.each<readonly [string, Error, number]>([
  ['of the API server', new KubeError('no', { status: 500, reason: 'InternalError' }), 0],
  ['of the store', new StoreError('unavailable', { outcome: 'unknown' }), 0],
  ['of the code', new Error('defect'), 1],
])(
  'an error %s is retried, and only one of the code is a defect',
  async (_name, error, defects) => {
    let isFailing = true
    const ownPool = () => (isFailing ? Promise.reject(error) : Promise.resolve(true))
    const { metrics, first, take, stop } = await leadPools({ pools: [poolOf('p')], ownPool })
    isFailing = false
    expect([first, await take(5)]).toEqual([[], ['p']])
    const { values } = await metrics.reconcilePanics.get()
    expect(values.reduce((sum, { value }) => sum + value, 0)).toBe(defects)
    await stop()
  },
)
