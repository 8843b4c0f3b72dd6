// Leadership among several candidates at a fake API server, each with a clock of its own; and the
// events and status conditions that a leader writes.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createEventRecorder } from '../../src/kube/events.ts'
import { createElection, type Election } from '../../src/kube/lease.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { type FakeKubeApi, startFakeKubeApi } from '../parts/fake-kube-api.ts'
import { createFakeScheduler, type FakeScheduler } from '../parts/fake-scheduler.ts'
import { callFake, quietLog } from '../parts/kube-watcher.ts'
import { PATHS } from '../parts/pool-world.ts'
import { waitFor } from './wait-for.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
let fake: FakeKubeApi
const closing: (() => void)[] = []

beforeEach(async () => {
  fake = await startFakeKubeApi()
})
afterEach(async () => {
  for (const close of closing.splice(0)) close()
  await fake.stop()
})

interface Candidate {
  readonly election: Election
  readonly clock: FakeScheduler
  readonly ending: AbortController
  /** What it has come to so far. */
  readonly told: string[]
}

/** Seeks to lead, and then keeps it. */
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
  const ending = new AbortController()
  const told: string[] = []
  const run = async () => {
    if (!(await election.acquire(ending.signal))) return
    told.push('won')
    told.push(await election.renew(ending.signal))
  }
  void run()
  closing.push(() => {
    ending.abort()
    close()
  })
  return { election, clock, ending, told }
}

const holder = () =>
  (fake.store.get(LEASES, 'lease')?.['spec'] as { holderIdentity?: string } | undefined)
    ?.holderIdentity
/** Lets time pass until its next call has been answered. */
async function step({ clock }: Candidate, ms: number) {
  const before = fake.calls.length
  await clock.advance(ms)
  if (clock.waiting() > 0) await waitFor('a call', () => fake.calls.length > before)
  await waitFor('its answer', async () => {
    await clock.advance(0)
    return clock.waiting() === 1
  })
}

test('one leads, and writes times in six digits', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  expect([holder(), one.election.isLeading()]).toEqual(['one', true])
  const spec = fake.store.get(LEASES, 'lease')?.['spec'] as Record<string, unknown>
  expect(spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 0 })
  expect(spec['renewTime']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('another takes it 15 s after it saw the last renewal, whatever the clocks say', async () => {
  const one = candidate('one', -3_600_000)
  await waitFor('the lead', () => one.told[0] === 'won')
  const two = candidate('two', 3_600_000)
  await waitFor('its first look', () => two.clock.waiting() === 1)
  for (let i = 0; i < 6; i++) await step(two, 2200)
  expect([holder(), two.told]).toEqual(['one', []])
  await step(two, 2200)
  expect(holder()).toBe('two')
  expect(two.clock.nowMs()).toBeLessThan(20_000)
})

test('who renews keeps it', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  const two = candidate('two')
  await waitFor('its first look', () => two.clock.waiting() === 1)
  for (let i = 0; i < 12; i++) {
    await step(one, 2000)
    await step(two, 2200)
  }
  expect([holder(), one.election.isLeading(), two.told]).toEqual(['one', true, []])
})

test('one that slept past its time leads no more, and says so before it asks', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  fake.refuse = () => ({ status: 500, reason: 'InternalError' })
  const sleeping = one.clock.advance(10_000)
  await waitFor('the loss', async () => {
    await one.clock.advance(100)
    return one.told.includes('lost')
  })
  await sleeping
  expect(one.election.isLeading()).toBe(false)
  expect(one.clock.nowMs()).toBeLessThan(14_000)
})

test('a Lease that somebody else wrote to is not lost', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  fake.store.patch(LEASES, 'lease', { metadata: { labels: { by: 'kubectl' } } })
  await step(one, 2000)
  await step(one, 2000)
  expect([one.told, one.election.isLeading(), holder()]).toEqual([['won'], true, 'one'])
})

test('released, it is taken at the next look', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  const two = candidate('two')
  await waitFor('its first look', () => two.clock.waiting() === 1)
  one.ending.abort()
  await waitFor('its end', () => one.told.includes('stopped'))
  await one.election.release()
  expect([holder(), one.election.isLeading()]).toEqual(['', false])
  await step(two, 2200)
  expect(holder()).toBe('two')
  expect(fake.store.get(LEASES, 'lease')?.['spec']).toMatchObject({ leaseTransitions: 1 })
})

test('released after a stop that cut off a renewal, it is free all the same', async () => {
  const one = candidate('one')
  await waitFor('the lead', () => one.told[0] === 'won')
  const unheard = fake.store.listen(() => {
    one.ending.abort() // the server has done it, and its answer is not heard
  })
  await one.clock.advance(2000)
  await waitFor('its end', () => one.told.includes('stopped'))
  unheard()
  expect(holder()).toBe('one')
  let writes = 0
  fake.refuse = ({ method }) => {
    // Somebody else writes to it between our look and our write.
    const labels = { by: 'kubectl' }
    if (method === 'PUT' && ++writes === 1)
      fake.store.patch(LEASES, 'lease', { metadata: { labels } })
    return undefined
  }
  await one.election.release()
  expect([holder(), writes]).toEqual(['', 2])
})

test('of two that begin at once one leads', async () => {
  const all = ['a', 'b', 'c', 'd'].map((name) => candidate(name))
  await waitFor('a holder', () => holder() !== undefined)
  await waitFor('all', () => all.every(({ clock }) => clock.waiting() === 1))
  expect(all.filter(({ election }) => election.isLeading())).toHaveLength(1)
})

test('events said again are counted; too many, or of who does not lead, are dropped', async () => {
  const { api, close } = callFake(fake)
  closing.push(close)
  let nowMs = 1_000_000
  let leads = true
  const metrics = createMetrics()
  const events = createEventRecorder({
    api,
    controller: 'c',
    instance: 'i',
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    metrics,
    log: quietLog,
    mayWrite: () => leads,
  })
  const regarding = { apiVersion: 'a/v1', kind: 'K', namespace: 'n', name: 'o', uid: 'u' }
  const tell = (note: string) => {
    events.emit({ regarding, type: 'Normal', reason: 'R', action: 'A', note })
  }
  tell('one')
  tell('one')
  nowMs += 61_000
  tell('one')
  await events.flush()
  expect(fake.store.list(PATHS.events)).toMatchObject([
    { regarding, note: 'one', series: { count: 3 }, eventTime: expect.stringMatching(/\.\d{6}Z$/) },
  ])
  for (let i = 0; i < 40; i++) tell(`note ${i}`)
  await events.flush()
  expect(fake.store.list(PATHS.events)).toHaveLength(25)
  leads = false
  nowMs += 3_600_000
  tell('late')
  await events.flush()
  expect(fake.store.list(PATHS.events)).toHaveLength(25)
  const text = await metrics.registry.metrics()
  expect(text).toContain('events_dropped_total{reason="too-many"} 16')
  expect(text).toContain('events_dropped_total{reason="not-leading"} 1')
})
