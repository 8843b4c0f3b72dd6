// Workers that take keys from a queue: retries, deadlines and metrics.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { KubeError } from './kube-error.ts'
import { runWorkers, TerminalError, type WorkersOptions } from './run-workers.ts'
import { createWorkQueue } from './work-queue.ts'

function open() {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const queue = createWorkQueue({ name: 'test', scheduler, metrics })
  return { scheduler, metrics, queue }
}
const silentLog = { error: () => undefined, warn: () => undefined, debug: () => undefined }
const neverAborted = new AbortController().signal
const fault = () => new KubeError('unavailable', { status: 500, reason: 'Internal' })

/** Starts workers and records their calls to the queue. */
function start(
  reconcile: WorkersOptions['reconcile'],
  { workers = 1, signal = neverAborted }: { workers?: number; signal?: AbortSignal } = {},
) {
  const { scheduler, metrics, queue } = open()
  const recorded: string[] = []
  const recording: WorkersOptions['queue'] = {
    ...queue,
    resetFailures(key) {
      recorded.push(`reset ${key}`)
      queue.resetFailures(key)
    },
    addFailed(key) {
      recorded.push(`failed ${key}`)
      queue.addFailed(key)
    },
    addAfter(key, ms) {
      recorded.push(`after ${ms} ${key}`)
      queue.addAfter(key, ms)
    },
  }
  const working = runWorkers(
    { name: 'test', queue: recording, workers, reconcile, scheduler, metrics, log: silentLog },
    signal,
  )
  const stop = async () => {
    queue.shutDown()
    await working
  }
  return { scheduler, metrics, queue, recorded, stop }
}

test('workers retry failed keys except after terminal errors, and survive a defect', async () => {
  const { queue, scheduler, metrics } = open()
  const reconciled: string[] = []
  const working = runWorkers(
    {
      name: 'test',
      queue,
      workers: 2,
      reconcile: (key) => {
        reconciled.push(key)
        const count = reconciled.filter((other) => other === key).length
        if (key === 'fault' && count < 3)
          return Promise.reject(new KubeError('unavailable', { status: 500, reason: 'Internal' }))
        if (key === 'terminal') return Promise.reject(new TerminalError('never'))
        if (key === 'defect' && count < 2) return Promise.reject(new TypeError('oops'))
        return Promise.resolve(key === 'later' && count < 2 ? { requeueAfterMs: 60_000 } : {})
      },
      scheduler,
      metrics,
      log: silentLog,
    },
    neverAborted,
  )
  for (const key of ['fault', 'terminal', 'defect', 'later']) queue.add(key)
  await scheduler.advance(30_000)
  expect(reconciled.toSorted()).toEqual([
    ...['defect', 'defect', 'fault', 'fault', 'fault', 'later', 'terminal'],
  ])
  await scheduler.advance(31_000)
  expect(reconciled.filter((key) => key === 'later')).toHaveLength(2)
  queue.shutDown()
  await working
  const exposition = await metrics.registry.metrics()
  expect(exposition).toContain(
    'controller_runtime_reconcile_total{controller="test",result="error"} 4',
  )
  expect(exposition).toContain('controller_runtime_reconcile_panics_total{controller="test"} 1')
  expect(exposition).toContain('controller_runtime_active_workers{controller="test"} 0')
})

test('a reconcile is aborted after a minute', async () => {
  const { queue, scheduler, metrics } = open()
  let aborted = 0
  const working = runWorkers(
    {
      name: 'test',
      queue,
      workers: 1,
      reconcile: (_key, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted++
            reject(new KubeError('timeout', { status: 0, reason: 'Timeout' }))
          })
        }),
      scheduler,
      metrics,
      log: silentLog,
    },
    neverAborted,
  )
  queue.add('slow')
  await scheduler.advance(59_000)
  expect(aborted).toBe(0)
  await scheduler.advance(1000)
  expect(aborted).toBe(1)
  queue.shutDown()
  await scheduler.advance(120_000)
  await working
})

test('a success or a terminal error resets the failures of a key', async () => {
  const outcomes: (() => Promise<object>)[] = [
    () => Promise.reject(fault()),
    () => Promise.resolve({}),
    () => Promise.reject(new TerminalError('never')),
    () => Promise.resolve({ requeueAfterMs: 0 }),
    () => Promise.resolve({ requeueAfterMs: 7 }),
  ]
  const { queue, scheduler, recorded, stop } = start(
    () => outcomes.shift()?.() ?? Promise.resolve({}),
  )
  queue.add('a')
  await scheduler.advance(5) // the failure, then the success
  expect(recorded.splice(0)).toEqual(['failed a', 'reset a'])
  queue.add('a')
  await scheduler.advance(1000)
  expect(recorded.splice(0)).toEqual(['reset a'])
  queue.add('a')
  await scheduler.advance(7)
  expect(recorded).toEqual(['reset a', 'after 0 a', 'reset a', 'after 7 a', 'reset a'])
  await stop()
  expect(scheduler.waiting()).toBe(0) // no deadline is pending
})

test('a failure during shutdown is neither counted nor retried', async () => {
  const stopping = new AbortController()
  const { queue, scheduler, metrics, recorded, stop } = start(
    (_key, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reject(fault())
        })
      }),
    { signal: stopping.signal },
  )
  queue.add('a')
  await scheduler.advance(10)
  stopping.abort() // aborts the reconcile's own signal
  await scheduler.advance(10)
  expect([recorded, queue.longestMs()]).toEqual([[], 0])
  await stop()
  expect((await metrics.reconcileErrors.get()).values).toEqual([])
})

test('one reconcile runs per worker, and never two of one key', async () => {
  const held = Promise.withResolvers<object>()
  const running: string[] = []
  const { queue, scheduler, metrics, stop } = start(
    (key) => {
      running.push(key)
      return held.promise
    },
    { workers: 3 },
  )
  for (const key of ['a', 'b', 'a', 'c', 'd']) queue.add(key)
  await scheduler.advance(10)
  queue.add('a')
  await scheduler.advance(10)
  expect(running).toEqual(['a', 'b', 'c'])
  const active = await metrics.activeWorkers.get()
  expect(active.values[0]?.value).toBe(3)
  held.resolve({})
  await scheduler.advance(10)
  expect(running).toEqual(['a', 'b', 'c', 'd', 'a'])
  await stop()
})

test('metrics have the result and the duration of each reconcile, in seconds', async () => {
  const { queue, scheduler, metrics, stop } = start(async (key) => {
    await new Promise<void>((resolve) => {
      scheduler.after(3000, resolve)
    })
    return key === 'a' ? {} : { requeueAfterMs: 60_000 }
  })
  await scheduler.advance(500)
  for (const key of ['a', 'b']) queue.add(key)
  await scheduler.advance(7000)
  const exposition = await metrics.registry.metrics()
  for (const series of [
    'total{controller="test",result="success"} 1',
    'total{controller="test",result="requeue_after"} 1',
    'time_seconds_sum{controller="test"} 6',
    'time_seconds_count{controller="test"} 2',
  ])
    expect(exposition).toContain(`controller_runtime_reconcile_${series}`)
  expect(exposition).toContain('controller_runtime_max_concurrent_reconciles{controller="test"} 1')
  await stop()
})
