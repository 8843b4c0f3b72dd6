// The queue of keys, and the workers that take from it, against a clock of the test's.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createFakeScheduler } from '../../test/parts/fake-scheduler.ts'
import { createMetrics } from '../process/metrics.ts'
import { KubeError } from './kube-error.ts'
import { runWorkers, TerminalError } from './run-workers.ts'
import { createWorkQueue } from './work-queue.ts'

function open() {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const queue = createWorkQueue({ name: 'test', scheduler, metrics })
  return { scheduler, metrics, queue }
}
const quiet = { error: () => undefined, warn: () => undefined, debug: () => undefined }
const never = new AbortController().signal

test('a key that is added twice is taken once', async () => {
  const { queue } = open()
  queue.add('a')
  queue.add('a')
  queue.add('b')
  expect([await queue.take(), await queue.take(), queue.depth()]).toEqual(['a', 'b', 0])
})

test('a key that is added while a worker has it comes again once that is done', async () => {
  const { queue } = open()
  queue.add('a')
  await queue.take()
  queue.add('a')
  queue.add('a')
  expect(queue.depth()).toBe(0)
  queue.done('a')
  expect([await queue.take(), queue.depth()]).toEqual(['a', 0])
  queue.done('a')
  expect(queue.depth()).toBe(0)
})

test('of several times for a key the earliest holds', async () => {
  const { queue, scheduler } = open()
  queue.addAfter('a', 1000)
  queue.addAfter('a', 100)
  queue.addAfter('a', 500)
  await scheduler.advance(99)
  expect(queue.depth()).toBe(0)
  await scheduler.advance(1)
  expect(queue.depth()).toBe(1)
  expect(scheduler.waiting()).toBe(0)
})

test('a key that fails waits 5 ms, twice as long at each failure, 1000 s at most', async () => {
  const { queue, scheduler } = open()
  const waits: number[] = []
  for (let i = 0; i < 20; i++) {
    queue.addFailed('a')
    const begunMs = scheduler.nowMs()
    while (queue.depth() === 0) await scheduler.advance(5)
    waits.push(scheduler.nowMs() - begunMs)
    queue.done((await queue.take()) ?? '')
    if (i > 2) await scheduler.advance(200_000)
    if (i === 8) queue.forget('a')
  }
  expect(waits.slice(0, 4)).toEqual([5, 10, 20, 40])
  expect(waits.slice(8, 11)).toEqual([1280, 5, 10])
  const { queue: other, scheduler: clock } = open()
  for (let i = 0; i < 30; i++) {
    other.addFailed('a')
    await clock.advance(1_000_000)
    other.done((await other.take()) ?? '')
  }
  expect(clock.nowMs()).toBe(30_000_000)
})

test('of many keys that fail at once 100 come at once, and then 10 a second', async () => {
  const { queue, scheduler } = open()
  for (let i = 0; i < 130; i++) queue.addFailed(`k${i}`)
  await scheduler.advance(10)
  expect(queue.depth()).toBe(100)
  await scheduler.advance(1000)
  expect(queue.depth()).toBe(110)
})

test('no key is lost, and none is with two workers, in any order of adding and doing', async () => {
  const step = fc.record({
    what: fc.constantFrom('add', 'take', 'done'),
    key: fc.constantFrom('a', 'b', 'c'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { queue } = open()
      const taken = new Set<string>()
      const owed = new Set<string>()
      for (const { what, key } of steps) {
        if (what === 'add') {
          queue.add(key)
          owed.add(key)
        } else if (what === 'take' && queue.depth() > 0) {
          const next = (await queue.take()) ?? ''
          expect(taken.has(next)).toBe(false)
          taken.add(next)
          owed.delete(next)
        } else if (what === 'done' && taken.delete(key)) queue.done(key)
      }
      for (const key of taken) queue.done(key)
      const left = new Set<string>()
      while (queue.depth() > 0) {
        const key = (await queue.take()) ?? ''
        left.add(key)
        queue.done(key)
      }
      expect([...left].sort()).toEqual([...owed].sort())
    }),
  )
})

test('an ended queue gives nothing and keeps no timer', async () => {
  const { queue, scheduler } = open()
  const taking = queue.take()
  queue.addAfter('a', 10)
  queue.end()
  queue.add('b')
  expect([await taking, await queue.take(), scheduler.waiting()]).toEqual([undefined, undefined, 0])
})

test('workers put back what failed, not what cannot succeed, and outlive a defect', async () => {
  const { queue, scheduler, metrics } = open()
  const seen: string[] = []
  const working = runWorkers(
    {
      name: 'test',
      queue,
      workers: 2,
      reconcile: (key) => {
        seen.push(key)
        const count = seen.filter((one) => one === key).length
        if (key === 'fault' && count < 3)
          return Promise.reject(new KubeError('away', { status: 500, reason: 'Internal' }))
        if (key === 'terminal') return Promise.reject(new TerminalError('never'))
        if (key === 'defect' && count < 2) return Promise.reject(new TypeError('oops'))
        return Promise.resolve(key === 'later' && count < 2 ? { requeueAfterMs: 60_000 } : {})
      },
      scheduler,
      metrics,
      log: quiet,
    },
    never,
  )
  for (const key of ['fault', 'terminal', 'defect', 'later']) queue.add(key)
  await scheduler.advance(30_000)
  expect(seen.toSorted()).toEqual([
    ...['defect', 'defect', 'fault', 'fault', 'fault', 'later', 'terminal'],
  ])
  await scheduler.advance(31_000)
  expect(seen.filter((key) => key === 'later')).toHaveLength(2)
  queue.end()
  await working
  const text = await metrics.registry.metrics()
  expect(text).toContain('controller_runtime_reconcile_total{controller="test",result="error"} 4')
  expect(text).toContain('controller_runtime_reconcile_panics_total{controller="test"} 1')
  expect(text).toContain('controller_runtime_active_workers{controller="test"} 0')
})

test('a reconcile is ended after a minute', async () => {
  const { queue, scheduler, metrics } = open()
  let ended = 0
  const working = runWorkers(
    {
      name: 'test',
      queue,
      workers: 1,
      reconcile: (_key, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            ended++
            reject(new KubeError('late', { status: 0, reason: 'Late' }))
          })
        }),
      scheduler,
      metrics,
      log: quiet,
    },
    never,
  )
  queue.add('slow')
  await scheduler.advance(59_000)
  expect(ended).toBe(0)
  await scheduler.advance(1000)
  expect(ended).toBe(1)
  queue.end()
  await scheduler.advance(120_000)
  await working
})
