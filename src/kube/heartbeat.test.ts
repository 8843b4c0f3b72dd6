// Detection of hung loops: the heartbeat, and the loops of this folder whose calls never return.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { createPoolController } from './code-pool/pool-controller.ts'
import { createElection } from './lease.ts'
import { createHeartbeat } from './heartbeat.ts'
import { completesWithin } from './scheduler.ts'

const silentLog = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
}
const never = () => new Promise<never>(() => undefined)
async function* silent(): AsyncGenerator<string, void> {
  yield await never()
}

test('a heartbeat is stale after its bound, unless it is stopped', async () => {
  const scheduler = createFakeScheduler()
  const heartbeat = createHeartbeat(scheduler, 1000)
  await scheduler.advance(5000)
  expect(heartbeat.isStale()).toBe(false)
  heartbeat.update()
  await scheduler.advance(1000)
  expect(heartbeat.isStale()).toBe(false)
  await scheduler.advance(1)
  expect(heartbeat.isStale()).toBe(true)
  heartbeat.update()
  expect(heartbeat.isStale()).toBe(false)
  await scheduler.advance(5000)
  heartbeat.stop()
  expect(heartbeat.isStale()).toBe(false)
})

test('work that exceeds its deadline is abandoned; errors before that are thrown', async () => {
  const scheduler = createFakeScheduler()
  const waiting = completesWithin(scheduler, 1000, never())
  await scheduler.advance(1000)
  expect(await waiting).toBe(false)
  expect(await completesWithin(scheduler, 1000, Promise.resolve())).toBe(true)
  await expect(completesWithin(scheduler, 1000, Promise.reject(new Error('x')))).rejects.toThrow(
    'x',
  )
})

test('an election whose call never returns is stuck', async () => {
  const scheduler = createFakeScheduler()
  const election = createElection({
    api: { call: never, lines: silent },
    ...{ namespace: 'n', name: 'l', identity: 'i', scheduler, random: () => 0, wallMs: () => 0 },
    ...{ metrics: createMetrics(), log: silentLog },
  })
  const stopping = new AbortController()
  void election.acquire(stopping.signal)
  await scheduler.advance(60_000)
  expect(election.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(election.isStuck()).toBe(true)
})

/** A controller of one CodePool; watches at its API server return no events. */
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
      get: () => ({ kind: 'present', level: 5000, rate: 0, ...owned }),
      refresh: () => Promise.resolve(true),
      firstRead: Promise.resolve(),
      start: () => ({ trigger: () => undefined, stop: () => Promise.resolve() }),
    },
    events: { emit: () => undefined, flush: () => Promise.resolve() },
    ...{ wallMs: () => 0, random: () => 0, metrics: createMetrics(), log: silentLog },
    onState: () => undefined,
  })
  const stopping = new AbortController()
  void controller.watch(stopping.signal)
  const leading = controller.lead(stopping.signal)
  return { controller, scheduler, stopping, leading }
}

test('a controller is stuck once its watch hangs, not before', async () => {
  const { controller, scheduler } = controllerOf(() => Promise.resolve(true))
  await scheduler.advance(300_000)
  expect([controller.hasSynced(), controller.isStuck()]).toEqual([true, false])
  await scheduler.advance(1)
  expect(controller.isStuck()).toBe(true)
})

test('a controller whose reconcile hangs is stuck, and still stops on a signal', async () => {
  const { controller, scheduler, stopping, leading } = controllerOf(never)
  await scheduler.advance(120_000)
  expect(controller.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(controller.isStuck()).toBe(true)
  stopping.abort()
  await scheduler.advance(2000)
  await leading
})
