// Whoever hangs is seen to: a pulse, and the loops of the kit whose calls never come back.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../test/parts/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { createPoolController } from './code-pool/pool-controller.ts'
import { createElection } from './lease.ts'
import { createPulse } from './pulse.ts'
import { endsWithin } from './scheduler.ts'

const quiet = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
}
const never = () => new Promise<never>(() => undefined)
async function* silent(): AsyncGenerator<string, void> {
  yield await never()
}

test('a pulse is late after its time, and not at rest', async () => {
  const scheduler = createFakeScheduler()
  const pulse = createPulse(scheduler, 1000)
  await scheduler.advance(5000)
  expect(pulse.isLate()).toBe(false)
  pulse.beat()
  await scheduler.advance(1000)
  expect(pulse.isLate()).toBe(false)
  await scheduler.advance(1)
  expect(pulse.isLate()).toBe(true)
  pulse.beat()
  expect(pulse.isLate()).toBe(false)
  await scheduler.advance(5000)
  pulse.rest()
  expect(pulse.isLate()).toBe(false)
})

test('what does not end in time is left, and what it throws is thrown', async () => {
  const scheduler = createFakeScheduler()
  const waiting = endsWithin(scheduler, 1000, never())
  await scheduler.advance(1000)
  expect(await waiting).toBe(false)
  expect(await endsWithin(scheduler, 1000, Promise.resolve())).toBe(true)
  await expect(endsWithin(scheduler, 1000, Promise.reject(new Error('x')))).rejects.toThrow('x')
})

test('an election whose call never comes back is stuck', async () => {
  const scheduler = createFakeScheduler()
  const election = createElection({
    api: { call: never, lines: silent },
    ...{ namespace: 'n', name: 'l', identity: 'i', scheduler, random: () => 0, wallMs: () => 0 },
    ...{ metrics: createMetrics(), log: quiet },
  })
  const ending = new AbortController()
  void election.win(ending.signal)
  await scheduler.advance(60_000)
  expect(election.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(election.isStuck()).toBe(true)
})

/** A controller of one CodePool, at an API server of which no watch tells anything. */
function controllerOf(ownPool: () => Promise<boolean>) {
  const scheduler = createFakeScheduler()
  const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' }
  const codeSecret = { name: 's', key: 'secret' }
  const pool = { metadata, spec: { lowWater: 2000, target: 5000, paused: false, codeSecret } }
  const call: KubeApi['call'] = ({ path }) => {
    const items = path.endsWith('codepools') ? [pool] : []
    return Promise.resolve({ items, metadata: { resourceVersion: '1' } })
  }
  const owned = { owner: null, lowWater: null, target: null }
  const controller = createPoolController({
    ...{ api: { call, lines: silent }, ownPool, namespaces: ['n'], ownerPrefix: '', scheduler },
    template: () => ({ reason: 'TemplateMissing', message: '' }),
    levels: {
      get: () => ({ kind: 'there', level: 5000, rate: 0, ...owned }),
      refresh: () => Promise.resolve(true),
      settled: Promise.resolve(),
      begin: () => ({ nudge: () => undefined, stop: () => Promise.resolve() }),
    },
    events: { tell: () => undefined, flush: () => Promise.resolve() },
    ...{ wallMs: () => 0, random: () => 0, metrics: createMetrics(), log: quiet },
    onState: () => undefined,
  })
  const ending = new AbortController()
  void controller.watch(ending.signal)
  const led = controller.lead(ending.signal)
  return { controller, scheduler, ending, led }
}

test('a controller whose watch hangs is stuck, and none that watches', async () => {
  const { controller, scheduler } = controllerOf(() => Promise.resolve(true))
  await scheduler.advance(300_000)
  expect([controller.hasSynced(), controller.isStuck()]).toEqual([true, false])
  await scheduler.advance(1)
  expect(controller.isStuck()).toBe(true)
})

test('a controller whose reconcile hangs is stuck, and still ends when it is told to', async () => {
  const { controller, scheduler, ending, led } = controllerOf(never)
  await scheduler.advance(120_000)
  expect(controller.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(controller.isStuck()).toBe(true)
  ending.abort()
  await scheduler.advance(2000)
  await led
})
