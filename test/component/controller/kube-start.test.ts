// The start of the controller before its store is connected, and its log of refills, on a fake API
// server.
import { afterEach, expect, test } from '@jest/globals'
import type { FakeObject } from '../../kit/kube/fake-kube-store.ts'
import { type PoolWorld, startPoolWorld } from '../../kit/kube/pool-world.ts'
import { waitFor } from '../../kit/wait-for.ts'

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
  expect(world.events()).toEqual([])
  expect(world.logged).toEqual([])
})

test('the log reports the start, completion and failure of each refill, with fields', async () => {
  world = await startPoolWorld()
  world.onJob = finishWith('Complete')
  world.createPool('p')
  await waitForCondition('Ready', 'True LevelSufficient')
  await waitForCondition('Refilling', 'False NotNeeded')
  const fields = { namespace: 'n', pool: 'p' }
  const job = expect.stringMatching(/^p-refill-/)
  expect(world.logged).toEqual([
    ['info', 'refill started', { ...fields, refill: 1, level: 0, fillTo: 5000 }],
    ['info', 'refill completed', { ...fields, refill: 1, job, tookMs: expect.any(Number) }],
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
