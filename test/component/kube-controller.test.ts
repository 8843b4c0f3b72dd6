// The controller on a fake API server: what becomes of CodePools when levels fall, Jobs fail, specs
// change and the API server or the store is away.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { FakeObject } from '../parts/fake-kube-store.ts'
import { PATHS, type PoolWorld, startPoolWorld } from '../parts/pool-world.ts'
import { waitFor } from './wait-for.ts'

let world: PoolWorld
const atOnce = (job: FakeObject) =>
  setImmediate(() => {
    world.endJob(job)
  })

beforeEach(async () => {
  world = await startPoolWorld()
})
afterEach(async () => {
  world.fake.refuse = () => undefined
  await world.stop()
})

const says = (name: string, type: string, what: string) =>
  waitFor(`${type} ${what}`, () => world.condition(name, type) === what)

const reconciles = async () => {
  const metric = world.metrics.registry.getSingleMetric('controller_runtime_reconcile_total')
  const { values = [] } = (await metric?.get()) ?? {}
  return values.reduce((sum, { value }) => sum + value, 0)
}

test('a new pool is filled by one Job, taken as ours, and rests', async () => {
  world.onJob = atOnce
  world.makePool('p')
  await says('p', 'Ready', 'True LevelSufficient')
  await says('p', 'Refilling', 'False NotNeeded')
  await waitFor('its owner', () => world.rows.get('n/p')?.owner === 'n/p')
  expect(world.rows.get('n/p')).toMatchObject({ minted: 5, lowWater: 2000, target: 5000 })
  expect(world.jobs()).toHaveLength(1)
  expect(world.statusOf('p')).toMatchObject({
    ...{ observedGeneration: 1, storeName: 'n/p', level: 5000, refills: 1, failures: 0 },
    lastRefill: { refill: 1, outcome: 'Succeeded' },
  })
  await waitFor('events', () => world.events().length === 2)
  expect(world.events()).toEqual(['RefillBegun', 'RefillSucceeded'])
})

test('below low water the level is brought back by exactly one Job, again and again', async () => {
  world.onJob = atOnce
  world.makePool('p')
  await says('p', 'Ready', 'True LevelSufficient')
  for (const [refill, claimed] of [
    [2, 4],
    [3, 8],
    [4, 12],
  ] as const) {
    world.setRow('n/p', { claimed })
    await waitFor('the next refill', () => world.statusOf('p')['refills'] === refill)
    await says('p', 'Refilling', 'False NotNeeded')
    expect(world.rows.get('n/p')?.minted).toBe(claimed + 5)
  }
  const made = world.fake.calls.filter(
    ({ method, path }) => method === 'POST' && path === PATHS.jobs,
  )
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201])
})

test('at rest nothing is written', async () => {
  world.onJob = atOnce
  for (let i = 0; i < 20; i++) world.makePool(`p${i}`)
  for (let i = 0; i < 20; i++) await says(`p${i}`, 'Refilling', 'False NotNeeded')
  for (let i = 0; i < 20; i++)
    await waitFor('its owner', () => world.rows.get(`n/p${i}`)?.target === 5000)
  await waitFor('all events', () => world.events().length === 40)
  const writes = world.writes()
  for (let i = 0; i < 20; i++) await world.levels.refresh()
  world.fake.expire() // all is listed anew, and nothing has changed
  await waitFor('the watches', () => world.fake.watches === 2)
  const reconciled = await reconciles()
  world.isStoreAway = true
  await world.levels.refresh()
  world.isStoreAway = false // which has every pool looked at again
  await waitFor('all reconciles', async () => (await reconciles()) >= reconciled + 20)
  expect(world.writes()).toBe(writes)
})

test('the Job carries the pool, the secret, the level and the template', async () => {
  world.makePool('p', {
    storeName: 'shared',
    job: { activeDeadlineSeconds: 120, resources: { requests: { cpu: '1' } } },
  })
  await waitFor('the Job', () => world.jobs().length === 1)
  const [job] = world.jobs()
  if (job === undefined) throw new Error('there is no Job')
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

test('a corrected spec wins over a Job that is stuck', async () => {
  world.makePool('p', { codeSecret: { name: 'wrong', key: 'secret' } })
  await says('p', 'Refilling', 'True JobRunning')
  const [stuck] = world.jobs()
  world.onJob = atOnce
  world.fake.store.patch(PATHS.pools, 'p', { spec: { codeSecret: { name: 'right' } } })
  await says('p', 'Ready', 'True LevelSufficient')
  expect(world.jobs().map(({ metadata }) => metadata.name)).not.toContain(stuck?.metadata.name)
  await waitFor('events', () => world.events().length === 4)
  expect(world.events()).toEqual([
    'RefillBegun',
    'RefillCancelled',
    'RefillBegun',
    'RefillSucceeded',
  ])
})

test('a Job that failed is shown with what its pod said, and tried again', async () => {
  const failing = (job: FakeObject) => {
    const { name } = job.metadata
    const message = '{"level":"info"}\ncurtail: pool n/p was first filled with another code secret'
    const state = { terminated: { exitCode: 3, message } }
    world.fake.store.create(PATHS.pods, {
      metadata: { name: `${name}-x`, labels: { 'batch.kubernetes.io/job-name': name } },
      status: { containerStatuses: [{ name: 'refill', state }] },
    })
    setImmediate(() => {
      world.endJob(job, 'Failed', 'PodFailurePolicy')
    })
  }
  world.onJob = failing
  world.makePool('p')
  await says('p', 'Degraded', 'True SecretChanged')
  await says('p', 'Refilling', 'False BackingOff')
  expect(world.statusOf('p')).toMatchObject({
    failures: 1,
    lastRefill: { outcome: 'Failed', message: expect.stringContaining('another code secret') },
  })
  world.onJob = atOnce
  await says('p', 'Ready', 'True LevelSufficient')
  await says('p', 'Degraded', 'False AsExpected')
  expect(world.statusOf('p')).toMatchObject({ failures: 0, refills: 2 })
  await waitFor('events', () => world.events().includes('Recovered'))
}, 20_000)

test('why a pod does not begin is said until one has begun', async () => {
  world.makePool('p')
  await says('p', 'Refilling', 'True JobRunning')
  const { name } = world.jobs()[0]?.metadata ?? {}
  if (name === undefined) throw new Error('there is no Job')
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
  patchJob({ creationTimestamp: minuteAgo, annotations: { look: '0' } })
  await says('p', 'Degraded', 'True PodNotStarted')
  world.fake.store.remove(PATHS.pods, 'first')
  const second = world.fake.store.create(PATHS.pods, { metadata: { name: 'second', labels } })
  const selector = `regarding.uid=${second.metadata.uid},type=Warning`
  const looks = () =>
    world.fake.calls.filter(({ query }) => query.get('fieldSelector') === selector).length
  // When it is looked at for the second time, what the first look gave stands.
  for (const look of [1, 2]) {
    patchJob({ annotations: { look: String(look) } })
    await waitFor('a look at the second pod', () => looks() >= look)
  }
  expect(world.condition('p', 'Degraded')).toBe('True PodNotStarted')
  patchJob({}, { ready: 1 })
  await says('p', 'Degraded', 'False AsExpected')
  await waitFor('events', () => world.events().length === 3)
  expect(world.events()).toEqual(['RefillBegun', 'PodNotStarted', 'Recovered'])
})

test('a Job that somebody deletes is made anew', async () => {
  world.makePool('p')
  await says('p', 'Refilling', 'True JobRunning')
  world.onJob = atOnce
  world.fake.store.remove(PATHS.jobs, world.jobs()[0]?.metadata.name ?? '')
  await says('p', 'Degraded', 'True JobGone')
  await says('p', 'Ready', 'True LevelSufficient')
  expect(world.statusOf('p')).toMatchObject({ refills: 2 })
}, 20_000)

test('paused, nothing is begun and what is at work is ended', async () => {
  world.makePool('p')
  await says('p', 'Refilling', 'True JobRunning')
  world.fake.store.patch(PATHS.pools, 'p', { spec: { paused: true } })
  await says('p', 'Refilling', 'False Paused')
  expect(world.jobs()).toEqual([])
  world.onJob = atOnce
  world.fake.store.patch(PATHS.pools, 'p', { spec: { paused: false } })
  await says('p', 'Ready', 'True LevelSufficient')
})

test('of two CodePools of one pool the older has it, and the other when that is gone', async () => {
  world.onJob = atOnce
  world.makePool('a', { storeName: 'shared' })
  await waitFor('its owner', () => world.rows.get('shared')?.owner === 'n/a')
  world.makePool('b', { storeName: 'shared' })
  await says('b', 'Degraded', 'True OtherOwner')
  expect(world.condition('b', 'Ready')).toBe('False OtherOwner')
  world.fake.store.remove(PATHS.pools, 'a')
  await waitFor('the other reason', () =>
    JSON.stringify(world.statusOf('b')).includes('curtail.dev/replaces-owner=n/a'),
  )
  expect(world.rows.get('shared')?.owner).toBe('n/a')
  const annotations = { 'curtail.dev/replaces-owner': 'n/a' }
  world.fake.store.patch(PATHS.pools, 'b', { metadata: { annotations } })
  await waitFor('its owner', () => world.rows.get('shared')?.owner === 'n/b')
  await says('b', 'Degraded', 'False AsExpected')
})

test('a store that is away is said, and nothing is begun until it is back', async () => {
  world.isStoreAway = true
  world.makePool('p')
  await says('p', 'Ready', 'Unknown StoreUnavailable')
  expect(world.jobs()).toEqual([])
  world.onJob = atOnce
  world.isStoreAway = false
  await says('p', 'Ready', 'True LevelSufficient')
  await says('p', 'Degraded', 'False AsExpected')
})

test('a Job that the API server refuses is said, and made once it may be', async () => {
  world.fake.refuse = ({ method, path }) =>
    method === 'POST' && path === PATHS.jobs ? { status: 403, reason: 'exceeded quota' } : undefined
  world.makePool('p')
  await says('p', 'Degraded', 'True JobRefused')
  expect(world.condition('p', 'Refilling')).toBe('False JobRefused')
  expect(world.statusOf('p')['refills']).toBe(0)
  world.fake.refuse = () => undefined
  world.onJob = atOnce
  await says('p', 'Ready', 'True LevelSufficient')
  await says('p', 'Degraded', 'False AsExpected')
  expect(world.statusOf('p')['refills']).toBe(1)
})

test('a template that is missing is said', async () => {
  const template = world.template
  world.template = { reason: 'TemplateMissing', message: 'no file' }
  world.makePool('p')
  await says('p', 'Degraded', 'True TemplateMissing')
  world.template = template
  world.setRow('n/p', { minted: 1 })
  await says('p', 'Refilling', 'True JobRunning')
})

test('an API server that is away and comes back costs nothing but time', async () => {
  world.onJob = atOnce
  for (let i = 0; i < 10; i++) world.makePool(`p${i}`)
  for (let i = 0; i < 10; i++) await says(`p${i}`, 'Ready', 'True LevelSufficient')
  await world.fake.stop()
  for (let i = 0; i < 10; i++) world.setRow(`n/p${i}`, { claimed: 5 })
  await waitFor('reconciles that fail', async () =>
    /reconcile_errors_total.*\} ([5-9]|\d\d)/.test(await world.metrics.registry.metrics()),
  )
  await world.fake.start()
  for (let i = 0; i < 10; i++)
    await waitFor('the level', () => world.rows.get(`n/p${i}`)?.minted === 10)
  const made = world.fake.calls.filter(
    ({ method, path }) => method === 'POST' && path === PATHS.jobs,
  )
  expect(made.filter(({ status }) => status === 201)).toHaveLength(20)
}, 60_000)

test('who leads no more writes nothing', async () => {
  world.isLeader = false
  world.makePool('p')
  await waitFor('a reconcile that fails', async () =>
    /reconcile_errors_total.*\} [1-9]/.test(await world.metrics.registry.metrics()),
  )
  expect(world.writes()).toBe(0)
})
