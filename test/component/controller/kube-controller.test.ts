// The controller on a fake API server: the status of CodePools when levels fall, Jobs fail, specs
// change, or the API server or the store is unavailable.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { FakeObject } from '../../kit/kube/fake-kube-store.ts'
import { PATHS, type PoolWorld, startPoolWorld } from '../../kit/kube/pool-world.ts'
import { waitFor } from '../../kit/wait-for.ts'

let world: PoolWorld
const completeJob = (job: FakeObject) =>
  setImmediate(() => {
    world.finishJob(job)
  })

beforeEach(async () => {
  world = await startPoolWorld()
})
afterEach(async () => {
  world.fake.reject = () => undefined
  await world.stop()
})

const waitForCondition = (name: string, type: string, expected: string) =>
  waitFor(`${type} ${expected}`, () => world.condition(name, type) === expected)

const reconciles = async () => {
  const metric = world.metrics.registry.getSingleMetric('controller_runtime_reconcile_total')
  const { values = [] } = (await metric?.get()) ?? {}
  return values.reduce((sum, { value }) => sum + value, 0)
}

test('the controller fills a new pool with one Job, and its CodePool owns the pool', async () => {
  world.onJob = completeJob
  world.createPool('p')
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  await waitForCondition('p', 'Refilling', 'False NotNeeded')
  await waitFor('the owner of the pool', () => world.rows.get('n/p')?.owner === 'n/p')
  expect(world.rows.get('n/p')).toMatchObject({ minted: 5, lowWater: 2000, target: 5000 })
  expect(world.jobs()).toHaveLength(1)
  expect(world.statusOf('p')).toMatchObject({
    ...{ observedGeneration: 1, storeName: 'n/p', level: 5000, refills: 1, failures: 0 },
    lastRefill: { refill: 1, outcome: 'Succeeded' },
  })
  await waitFor('events', () => world.events().length === 2)
  expect(world.events()).toEqual(['RefillStarted', 'RefillSucceeded'])
})

test('exactly one Job refills a pool each time its level falls below low water', async () => {
  world.onJob = completeJob
  world.createPool('p')
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  for (const [refill, claimed] of [
    [2, 4],
    [3, 8],
    [4, 12],
  ] as const) {
    world.setRow('n/p', { claimed })
    await waitFor('the next refill', () => world.statusOf('p')['refills'] === refill)
    await waitForCondition('p', 'Refilling', 'False NotNeeded')
    expect(world.rows.get('n/p')?.minted).toBe(claimed + 5)
  }
  const created = world.fake.calls.filter(
    ({ method, path }) => method === 'POST' && path === PATHS.jobs,
  )
  expect(created.map(({ status }) => status)).toEqual([201, 201, 201, 201])
})

test('the controller writes nothing while nothing changes', async () => {
  world.onJob = completeJob
  for (let i = 0; i < 20; i++) world.createPool(`p${i}`)
  for (let i = 0; i < 20; i++) await waitForCondition(`p${i}`, 'Refilling', 'False NotNeeded')
  for (let i = 0; i < 20; i++)
    await waitFor('the owner of the pool', () => world.rows.get(`n/p${i}`)?.target === 5000)
  await waitFor('all events', () => world.events().length === 40)
  const writes = world.writes()
  for (let i = 0; i < 20; i++) await world.levels.refresh()
  world.fake.expire() // the controller relists everything; nothing changed
  await waitFor('the watches', () => world.fake.watches.size === 2)
  const reconciled = await reconciles()
  world.isStoreUnavailable = true
  await world.levels.refresh()
  world.isStoreUnavailable = false // which reconciles every pool
  await waitFor('all reconciles', async () => (await reconciles()) >= reconciled + 20)
  expect(world.writes()).toBe(writes)
})

test('the Job contains the pool, the secret, the target and the template', async () => {
  world.createPool('p', {
    storeName: 'shared',
    job: { activeDeadlineSeconds: 120, resources: { requests: { cpu: '1' } } },
  })
  await waitFor('the Job', () => world.jobs().length === 1)
  const [job] = world.jobs()
  if (job === undefined) throw new Error('no Job found')
  expect(job.metadata.name).toMatch(/^p-refill-[0-9a-f]{10}$/)
  expect(job.metadata['ownerReferences']).toMatchObject([{ kind: 'CodePool', controller: true }])
  expect(['CODE_POOL', 'POOL_TARGET', 'LOG_LEVEL'].map((name) => world.envOf(job, name))).toEqual([
    ...['shared', '5000', 'info'],
  ])
  expect(job['spec']).toMatchObject({
    activeDeadlineSeconds: 120,
    template: {
      metadata: { labels: { app: 'refill' } },
      spec: {
        serviceAccountName: 'refill',
        restartPolicy: 'Never',
        containers: [{ image: 'curtail:1', resources: { requests: { cpu: '1' } } }],
        volumes: [
          { secret: { secretName: 'secret', defaultMode: 288, items: [{ key: 'secret' }] } },
        ],
      },
    },
  })
})

test('a corrected spec replaces a stuck Job', async () => {
  world.createPool('p', { codeSecret: { name: 'wrong', key: 'secret' } })
  await waitForCondition('p', 'Refilling', 'True JobRunning')
  const [stuck] = world.jobs()
  world.onJob = completeJob
  world.fake.store.patch(PATHS.pools, 'p', { spec: { codeSecret: { name: 'right' } } })
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  expect(world.jobs().map(({ metadata }) => metadata.name)).not.toContain(stuck?.metadata.name)
  await waitFor('events', () => world.events().length === 4)
  expect(world.events()).toEqual([
    'RefillStarted',
    'RefillCancelled',
    'RefillStarted',
    'RefillSucceeded',
  ])
})

test('the status shows the termination message of a failed Job, which is retried', async () => {
  const failJob = (job: FakeObject) => {
    const { name } = job.metadata
    const message = '{"level":"info"}\ncurtail: pool n/p was created with a different code secret'
    const state = { terminated: { exitCode: 3, message } }
    world.fake.store.create(PATHS.pods, {
      metadata: { name: `${name}-x`, labels: { 'batch.kubernetes.io/job-name': name } },
      status: { containerStatuses: [{ name: 'refill', state }] },
    })
    setImmediate(() => {
      world.finishJob(job, 'Failed', 'PodFailurePolicy')
    })
  }
  world.onJob = failJob
  world.createPool('p')
  await waitForCondition('p', 'Degraded', 'True SecretChanged')
  await waitForCondition('p', 'Refilling', 'False BackingOff')
  expect(world.statusOf('p')).toMatchObject({
    failures: 1,
    lastRefill: { outcome: 'Failed', message: expect.stringContaining('a different code secret') },
  })
  world.onJob = completeJob
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  await waitForCondition('p', 'Degraded', 'False AsExpected')
  expect(world.statusOf('p')).toMatchObject({ failures: 0, refills: 2 })
  await waitFor('events', () => world.events().includes('Recovered'))
}, 60_000)

test('the status reports why a pod does not start until one has started', async () => {
  world.createPool('p')
  await waitForCondition('p', 'Refilling', 'True JobRunning')
  const { name } = world.jobs()[0]?.metadata ?? {}
  if (name === undefined) throw new Error('no Job found')
  const labels = { 'batch.kubernetes.io/job-name': name }
  const state = { waiting: { reason: 'CreateContainerConfigError', message: 'no key' } }
  const containerStatuses = [{ name: 'refill', state }]
  world.fake.store.create(PATHS.pods, {
    metadata: { name: 'first', labels },
    status: { containerStatuses },
  })
  const minuteAgo = new Date(Date.now() - 60_000).toISOString()
  const patchJob = (metadata: object, status = {}) =>
    world.fake.store.patch(PATHS.jobs, name, { metadata, status })
  patchJob({ creationTimestamp: minuteAgo, annotations: { observation: '0' } })
  await waitForCondition('p', 'Degraded', 'True PodNotStarted')
  world.fake.store.remove(PATHS.pods, 'first')
  const second = world.fake.store.create(PATHS.pods, { metadata: { name: 'second', labels } })
  const selector = `regarding.uid=${second.metadata.uid},type=Warning`
  const observations = () =>
    world.fake.calls.filter(({ query }) => query.get('fieldSelector') === selector).length
  // On the second observation, the result of the first one remains.
  for (const observation of [1, 2]) {
    patchJob({ annotations: { observation: String(observation) } })
    await waitFor('an observation of the second pod', () => observations() >= observation)
  }
  expect(world.condition('p', 'Degraded')).toBe('True PodNotStarted')
  patchJob({}, { ready: 1 })
  await waitForCondition('p', 'Degraded', 'False AsExpected')
  await waitFor('events', () => world.events().length === 3)
  expect(world.events()).toEqual(['RefillStarted', 'PodNotStarted', 'Recovered'])
})

test('a deleted Job is recreated', async () => {
  world.createPool('p')
  await waitForCondition('p', 'Refilling', 'True JobRunning')
  world.onJob = completeJob
  world.fake.store.remove(PATHS.jobs, world.jobs()[0]?.metadata.name ?? '')
  await waitForCondition('p', 'Degraded', 'True JobDeleted')
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  expect(world.statusOf('p')).toMatchObject({ refills: 2 })
}, 60_000)

test('a paused pool starts no Job and deletes the active one', async () => {
  world.createPool('p')
  await waitForCondition('p', 'Refilling', 'True JobRunning')
  world.fake.store.patch(PATHS.pools, 'p', { spec: { paused: true } })
  await waitForCondition('p', 'Refilling', 'False Paused')
  expect(world.jobs()).toEqual([])
  world.onJob = completeJob
  world.fake.store.patch(PATHS.pools, 'p', { spec: { paused: false } })
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
})

test('the older of two CodePools of one pool owns it until the other may replace it', async () => {
  world.onJob = completeJob
  world.createPool('a', { storeName: 'shared' })
  await waitFor('the owner of the pool', () => world.rows.get('shared')?.owner === 'n/a')
  world.createPool('b', { storeName: 'shared' })
  await waitForCondition('b', 'Degraded', 'True OtherOwner')
  expect(world.condition('b', 'Ready')).toBe('False OtherOwner')
  world.fake.store.remove(PATHS.pools, 'a')
  await waitFor('the hint about replacing the owner', () =>
    JSON.stringify(world.statusOf('b')).includes('curtail.dev/replaces-owner=n/a'),
  )
  expect(world.rows.get('shared')?.owner).toBe('n/a')
  const annotations = { 'curtail.dev/replaces-owner': 'n/a' }
  world.fake.store.patch(PATHS.pools, 'b', { metadata: { annotations } })
  await waitFor('the owner of the pool', () => world.rows.get('shared')?.owner === 'n/b')
  await waitForCondition('b', 'Degraded', 'False AsExpected')
})

test('the status reports an unavailable store; no Job starts until it is available', async () => {
  world.isStoreUnavailable = true
  world.createPool('p')
  await waitForCondition('p', 'Ready', 'Unknown StoreUnavailable')
  expect(world.jobs()).toEqual([])
  world.onJob = completeJob
  world.isStoreUnavailable = false
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  await waitForCondition('p', 'Degraded', 'False AsExpected')
})

test('the status reports a Job that the API server rejects; the Job is retried', async () => {
  world.fake.reject = ({ method, path }) =>
    method === 'POST' && path === PATHS.jobs ? { status: 403, reason: 'exceeded quota' } : undefined
  world.createPool('p')
  await waitForCondition('p', 'Degraded', 'True JobRejected')
  expect(world.condition('p', 'Refilling')).toBe('False JobRejected')
  expect(world.statusOf('p')['refills']).toBe(0)
  world.fake.reject = () => undefined
  world.onJob = completeJob
  await waitForCondition('p', 'Ready', 'True LevelSufficient')
  await waitForCondition('p', 'Degraded', 'False AsExpected')
  expect(world.statusOf('p')['refills']).toBe(1)
})

test('the status reports a missing template', async () => {
  const template = world.template
  world.template = { reason: 'TemplateMissing', message: 'no file' }
  world.createPool('p')
  await waitForCondition('p', 'Degraded', 'True TemplateMissing')
  world.template = template
  world.setRow('n/p', { minted: 1 })
  await waitForCondition('p', 'Refilling', 'True JobRunning')
})

test('the controller recovers from an unavailable API server without extra Jobs', async () => {
  world.onJob = completeJob
  for (let i = 0; i < 10; i++) world.createPool(`p${i}`)
  for (let i = 0; i < 10; i++) await waitForCondition(`p${i}`, 'Ready', 'True LevelSufficient')
  await world.fake.stop()
  for (let i = 0; i < 10; i++) world.setRow(`n/p${i}`, { claimed: 5 })
  await waitFor('reconciles that fail', async () =>
    /reconcile_errors_total.*\} ([5-9]|\d\d)/.test(await world.metrics.registry.metrics()),
  )
  await world.fake.start()
  for (let i = 0; i < 10; i++)
    await waitFor('the level', () => world.rows.get(`n/p${i}`)?.minted === 10)
  const created = world.fake.calls.filter(
    ({ method, path }) => method === 'POST' && path === PATHS.jobs,
  )
  expect(created.filter(({ status }) => status === 201)).toHaveLength(20)
}, 60_000)

test('a controller that lost leadership writes nothing', async () => {
  world.isLeader = false
  world.createPool('p')
  await waitFor('a reconcile that fails', async () =>
    /reconcile_errors_total.*\} [1-9]/.test(await world.metrics.registry.metrics()),
  )
  expect(world.writes()).toBe(0)
})
