// Leader election among several candidates on a fake API server, each with its own clock, and the
// events that a leader writes.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createEventRecorder } from '../../../src/kube/events.ts'
import { createElection, type Election } from '../../../src/kube/lease.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import { createFakeScheduler, type FakeScheduler } from '../../kit/fake-scheduler.ts'
import { callFake, quietLog } from '../../kit/kube/kube-watcher.ts'
import { PATHS } from '../../kit/kube/pool-world.ts'
import { waitFor } from '../../kit/wait-for.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
let fake: FakeKubeApi
const cleanUps: (() => void)[] = []

beforeEach(async () => {
  fake = await startFakeKubeApi()
})
afterEach(async () => {
  for (const close of cleanUps.splice(0)) close()
  await fake.stop()
})

interface Candidate {
  readonly election: Election
  readonly clock: FakeScheduler
  readonly stopping: AbortController
  /** The outcomes of `acquire` and `renew` so far. */
  readonly outcomes: string[]
}

/** Acquires the Lease, and then renews it. */
function candidate(identity: string, skewMs = 0): Candidate {
  const clock = createFakeScheduler()
  const { api, close } = callFake(fake)
  const election = createElection({
    api,
    namespace: 'n',
    name: 'lease',
    identity,
    scheduler: clock,
    random: () => 0.5,
    wallMs: () => Date.now() + skewMs,
    metrics: createMetrics(),
    log: quietLog,
  })
  const stopping = new AbortController()
  const outcomes: string[] = []
  const run = async () => {
    if (!(await election.acquire(stopping.signal))) return
    outcomes.push('won')
    outcomes.push(await election.renew(stopping.signal))
  }
  void run()
  cleanUps.push(() => {
    stopping.abort()
    close()
  })
  return { election, clock, stopping, outcomes }
}

const holder = () =>
  (fake.store.get(LEASES, 'lease')?.['spec'] as { holderIdentity?: string } | undefined)
    ?.holderIdentity
/** Advances the candidate's clock until its next call has completed. */
async function step({ clock }: Candidate, ms: number) {
  const before = fake.calls.length
  await clock.advance(ms)
  if (clock.waiting() > 0) await waitFor('a call', () => fake.calls.length > before)
  await waitFor('the response', async () => {
    await clock.advance(0)
    return clock.waiting() === 1
  })
}

test('one candidate leads, and writes times with six fractional digits', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  expect([holder(), one.election.isLeading()]).toEqual(['one', true])
  const spec = fake.store.get(LEASES, 'lease')?.['spec'] as Record<string, unknown>
  expect(spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 0 })
  expect(spec['renewTime']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('another candidate acquires an expired Lease after 15 s, despite clock skew', async () => {
  const one = candidate('one', -3_600_000)
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  const two = candidate('two', 3_600_000)
  await waitFor('the first read of the Lease', () => two.clock.waiting() === 1)
  for (let i = 0; i < 6; i++) await step(two, 2200)
  expect([holder(), two.outcomes]).toEqual(['one', []])
  await step(two, 2200)
  expect(holder()).toBe('two')
  expect(two.clock.nowMs()).toBeLessThan(20_000)
})

test('a leader that renews keeps the Lease', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  const two = candidate('two')
  await waitFor('the first read of the Lease', () => two.clock.waiting() === 1)
  for (let i = 0; i < 12; i++) {
    await step(one, 2000)
    await step(two, 2200)
  }
  expect([holder(), one.election.isLeading(), two.outcomes]).toEqual(['one', true, []])
})

test('a leader that stalls longer than the Lease loses leadership without a call', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  fake.reject = () => ({ status: 500, reason: 'InternalError' })
  const stalling = one.clock.advance(10_000)
  await waitFor('the loss of leadership', async () => {
    await one.clock.advance(100)
    return one.outcomes.includes('lost')
  })
  await stalling
  expect(one.election.isLeading()).toBe(false)
  expect(one.clock.nowMs()).toBeLessThan(14_000)
})

test('a change of the Lease by another writer does not lose leadership', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  fake.store.patch(LEASES, 'lease', { metadata: { labels: { by: 'kubectl' } } })
  await step(one, 2000)
  await step(one, 2000)
  expect([one.outcomes, one.election.isLeading(), holder()]).toEqual([['won'], true, 'one'])
})

test('another candidate acquires a released Lease at its next read', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  const two = candidate('two')
  await waitFor('the first read of the Lease', () => two.clock.waiting() === 1)
  one.stopping.abort()
  await waitFor('the stop', () => one.outcomes.includes('stopped'))
  await one.election.release()
  expect([holder(), one.election.isLeading()]).toEqual(['', false])
  await step(two, 2200)
  expect(holder()).toBe('two')
  expect(fake.store.get(LEASES, 'lease')?.['spec']).toMatchObject({ leaseTransitions: 1 })
})

test('release after a stop that aborted a renewal still frees the Lease', async () => {
  const one = candidate('one')
  await waitFor('leadership', () => one.outcomes[0] === 'won')
  const stopListening = fake.store.listen(() => {
    one.stopping.abort() // the server applied the write, but the response is not read
  })
  await one.clock.advance(2000)
  await waitFor('the stop', () => one.outcomes.includes('stopped'))
  stopListening()
  expect(holder()).toBe('one')
  let writes = 0
  fake.reject = ({ method }) => {
    // Another writer changes it between our read and our write.
    const labels = { by: 'kubectl' }
    if (method === 'PUT' && ++writes === 1)
      fake.store.patch(LEASES, 'lease', { metadata: { labels } })
    return undefined
  }
  await one.election.release()
  expect([holder(), writes]).toEqual(['', 2])
})

test('exactly one of several candidates that start concurrently leads', async () => {
  const all = ['a', 'b', 'c', 'd'].map((name) => candidate(name))
  await waitFor('a holder', () => holder() !== undefined)
  await waitFor('all', () => all.every(({ clock }) => clock.waiting() === 1))
  expect(all.filter(({ election }) => election.isLeading())).toHaveLength(1)
})

test('the recorder drops excess events and those of a replica that does not lead', async () => {
  const { api, close } = callFake(fake)
  cleanUps.push(close)
  let nowMs = 1_000_000
  let isLeader = true
  const metrics = createMetrics()
  const events = createEventRecorder({
    api,
    controller: 'c',
    instance: 'i',
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    metrics,
    log: quietLog,
    mayWrite: () => isLeader,
  })
  const regarding = { apiVersion: 'a/v1', kind: 'K', namespace: 'n', name: 'o', uid: 'u' }
  const emit = (note: string) => {
    events.emit({ regarding, type: 'Normal', reason: 'R', action: 'A', note })
  }
  for (let i = 0; i < 40; i++) emit(`note ${i}`)
  await events.flush()
  expect(fake.store.list(PATHS.events)).toHaveLength(25)
  isLeader = false
  nowMs += 3_600_000
  emit('not leading')
  await events.flush()
  expect(fake.store.list(PATHS.events)).toHaveLength(25)
  const output = await metrics.registry.metrics()
  expect(output).toContain('events_dropped_total{reason="too-many"} 15')
  expect(output).toContain('events_dropped_total{reason="not-leading"} 1')
})
