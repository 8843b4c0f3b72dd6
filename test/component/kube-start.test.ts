// The start of the controller and its log of refills, on a fake API server: nothing is reported of
// a store to which there is no connection yet.
import { afterEach, expect, test } from '@jest/globals'
import type { FakeObject } from '../parts/fake-kube-store.ts'
import { type PoolWorld, startPoolWorld } from '../parts/pool-world.ts'
import { waitFor } from './wait-for.ts'

let world: PoolWorld

afterEach(async () => {
  await world.stop()
})

const says = (type: string, what: string) =>
  waitFor(`${type} ${what}`, () => world.condition('p', type) === what)
const endsWith = (end: 'Complete' | 'Failed') => (job: FakeObject) =>
  setImmediate(() => {
    world.endJob(job, end, end === 'Failed' ? 'BackoffLimitExceeded' : '')
  })

test('until the store is connected nothing is read, and no status is written', async () => {
  world = await startPoolWorld(false)
  world.setRow('n/p', { minted: 5, owner: 'n/p', lowWater: 2000, target: 5000 })
  world.makePool('p')
  await waitFor('the watches', () => world.fake.watches === 2)
  expect([world.reads, world.statusOf('p')]).toEqual([0, {}])
  world.connected.resolve(undefined)
  await says('Ready', 'True LevelSufficient')
  await says('Degraded', 'False AsExpected')
  expect(world.events()).toEqual([])
  expect(world.logged).toEqual([])
})

test('the log reports the start, completion and failure of each refill, with fields', async () => {
  world = await startPoolWorld()
  world.onJob = endsWith('Complete')
  world.makePool('p')
  await says('Ready', 'True LevelSufficient')
  await says('Refilling', 'False NotNeeded')
  const of = { namespace: 'n', pool: 'p' }
  const job = expect.stringMatching(/^p-refill-/)
  expect(world.logged).toEqual([
    ['info', 'refill started', { ...of, refill: 1, level: 0, fillTo: 5000 }],
    ['info', 'refill completed', { ...of, refill: 1, job, tookMs: expect.any(Number) }],
  ])
  world.onJob = endsWith('Failed')
  world.setRow('n/p', { claimed: 4 })
  const failed = () => world.logged.find(([, msg]) => msg === 'refill failed')
  await waitFor('the failure', () => failed() !== undefined)
  expect(failed()).toEqual([
    'warn',
    'refill failed',
    expect.objectContaining({ ...of, refill: 2, reason: expect.any(String) }),
  ])
})
