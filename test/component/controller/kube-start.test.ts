// The start of the controller before its store is connected, and its log of refills, on a fake API
// server.
import { afterEach, expect, test } from '@jest/globals'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import type { FakeObject } from '../../kit/kube/fake-kube-store.ts'
import { callFake } from '../../kit/kube/kube-watcher.ts'
import { PoolKeeper } from '../../kit/kube/pool-keeper.ts'
import { PATHS, type PoolWorld, startPoolWorld } from '../../kit/kube/pool-world.ts'
import { waitFor } from '../../kit/wait-for.ts'

interface RefillFields {
  readonly refill: number
}

let world: PoolWorld

afterEach(async () => {
  await world.stop()
})

const waitForCondition = (type: string, expected: string) =>
  waitFor(`${type} ${expected}`, () => world.condition('p', type) === expected)
const finishWith = (outcome: 'Complete' | 'Failed') => (job: FakeObject) =>
  setImmediate(() => {
    world.finishJob(job, outcome, outcome === 'Failed' ? 'BackoffLimitExceeded' : '')
  })

test('the controller reads and writes no pool before the store is connected', async () => {
  world = await startPoolWorld(false)
  world.setRow('n/p', { minted: 5, owner: 'n/p', lowWater: 2000, target: 5000 })
  world.createPool('p')
  await waitFor('the watches', () => world.fake.watches.size === 2)
  expect([world.reads, world.statusOf('p')]).toEqual([0, {}])
  world.connected.resolve(undefined)
  await waitForCondition('Ready', 'True LevelSufficient')
  await waitForCondition('Degraded', 'False AsExpected')
  // The reconcile of a change starts after the previous one has logged.
  world.fake.store.patch(PATHS.pools, 'p', { spec: { lowWater: 2001 } })
  await waitFor('the next reconcile', () => world.rows.get('n/p')?.lowWater === 2001)
  expect(world.events()).toEqual([])
  expect(world.logged).toEqual([])
})

test('the log reports the start, completion and failure of each refill, with fields', async () => {
  world = await startPoolWorld()
  world.onJob = finishWith('Complete')
  world.createPool('p')
  await waitForCondition('Ready', 'True LevelSufficient')
  await waitForCondition('Refilling', 'False NotNeeded')
  await waitFor('the lines', () => world.logged.length === 2) // logged after the status is written
  const fields = { namespace: 'n', pool: 'p' }
  const job = expect.stringMatching(/^p-refill-/)
  expect(world.logged).toEqual([
    ['info', 'refill started', { ...fields, refill: 1, job, poolLevel: 0, fillTo: 5000 }],
    [
      'info',
      'refill completed',
      { ...fields, refill: 1, job, poolLevel: 5000, tookMs: expect.any(Number) },
    ],
  ])
  world.onJob = finishWith('Failed')
  world.setRow('n/p', { claimed: 4 })
  const failed = () => world.logged.find(([, msg]) => msg === 'refill failed')
  await waitFor('the failure', () => failed() !== undefined)
  expect(failed()).toEqual([
    'warn',
    'refill failed',
    expect.objectContaining({ ...fields, refill: 2, reason: expect.any(String) }),
  ])
})

test('the log reports the cancellation of a refill, with its cause', async () => {
  world = await startPoolWorld()
  world.createPool('p')
  await waitForCondition('Refilling', 'True JobRunning')
  world.fake.store.patch(PATHS.pools, 'p', { spec: { paused: true } })
  const cancelled = () => world.logged.find(([, msg]) => msg === 'refill cancelled')
  await waitFor('the cancellation', () => cancelled() !== undefined)
  expect(cancelled()).toEqual([
    'info',
    'refill cancelled',
    expect.objectContaining({ pool: 'p', refill: 1, reason: 'the CodePool is paused' }),
  ])
})

test('a new leader logs nothing about refills that its predecessor has logged', async () => {
  world = await startPoolWorld()
  world.onJob = finishWith('Complete')
  world.createPool('p')
  await waitForCondition('Refilling', 'False NotNeeded')
  world.isLeader = false
  const metrics = createMetrics()
  const { api, close } = callFake(world.fake, metrics)
  const next = new PoolKeeper(api, metrics)
  try {
    for (const [name, row] of world.rows) next.setRow(name, row)
    // It marks the pool as owned when it has reconciled the CodePool.
    world.fake.store.patch(PATHS.pools, 'p', { spec: { lowWater: 2001 } })
    await waitFor('a reconcile', () => next.rows.get('n/p')?.lowWater === 2001)
    world.onJob = () => undefined
    next.setRow('n/p', { claimed: 4 })
    await waitFor('the next refill', () => next.logged.length > 0)
    expect(next.logged.map(([, msg, fields]) => [msg, (fields as RefillFields).refill])).toEqual([
      ['refill started', 2],
    ])
  } finally {
    await next.stop()
    close()
  }
})
