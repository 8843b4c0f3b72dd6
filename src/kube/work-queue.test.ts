// The queue of keys, on a fake clock.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createFakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createWorkQueue } from './work-queue.ts'

function open() {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const queue = createWorkQueue({ name: 'test', scheduler, metrics })
  return { scheduler, metrics, queue }
}

test('a key that is added twice is taken once', async () => {
  const { queue } = open()
  queue.add('a')
  queue.add('a')
  queue.add('b')
  expect([await queue.take(), await queue.take(), queue.depth()]).toEqual(['a', 'b', 0])
})

test('a key that is added while a worker processes it is requeued once done', async () => {
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

test('of several delays for a key the earliest applies', async () => {
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

test('a failed key waits 5 ms, twice as long at each failure, at most 1000 s', async () => {
  const { queue, scheduler } = open()
  const waits: number[] = []
  for (let i = 0; i < 20; i++) {
    queue.addFailed('a')
    const startedMs = scheduler.nowMs()
    while (queue.depth() === 0) await scheduler.advance(5)
    waits.push(scheduler.nowMs() - startedMs)
    queue.done((await queue.take()) ?? '')
    if (i > 2) await scheduler.advance(200_000)
    if (i === 8) queue.resetFailures('a')
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

test('of many keys that fail together, 100 are due immediately, then 10 per second', async () => {
  const { queue, scheduler } = open()
  for (let i = 0; i < 130; i++) queue.addFailed(`k${i}`)
  await scheduler.advance(10)
  expect(queue.depth()).toBe(100)
  await scheduler.advance(1000)
  expect(queue.depth()).toBe(110)
})

test('no key is lost or taken by two workers, in any order of calls', async () => {
  const step = fc.record({
    what: fc.constantFrom('add', 'take', 'done'),
    key: fc.constantFrom('a', 'b', 'c'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { queue } = open()
      const taken = new Set<string>()
      const expected = new Set<string>()
      for (const { what, key } of steps) {
        if (what === 'add') {
          queue.add(key)
          expected.add(key)
        } else if (what === 'take' && queue.depth() > 0) {
          const next = (await queue.take()) ?? ''
          expect(taken.has(next)).toBe(false)
          taken.add(next)
          expected.delete(next)
        } else if (what === 'done' && taken.delete(key)) queue.done(key)
      }
      for (const key of taken) queue.done(key)
      const remaining = new Set<string>()
      while (queue.depth() > 0) {
        const key = (await queue.take()) ?? ''
        remaining.add(key)
        queue.done(key)
      }
      expect([...remaining].sort()).toEqual([...expected].sort())
    }),
  )
})

test('after shutdown a queue returns no keys and leaks no timer', async () => {
  const { queue, scheduler } = open()
  const taking = queue.take()
  queue.addAfter('a', 10)
  queue.shutDown()
  queue.add('b')
  expect([await taking, await queue.take(), scheduler.waiting()]).toEqual([undefined, undefined, 0])
})

test('shutdown drops queued keys, and no new ones are accepted', async () => {
  const { queue, scheduler, metrics } = open()
  queue.add('waits')
  queue.shutDown()
  queue.add('dropped')
  queue.addAfter('dropped', 10)
  queue.addFailed('dropped')
  expect([queue.depth(), scheduler.waiting()]).toEqual([0, 0])
  expect((await metrics.queueAdds.get()).values[0]?.value).toBe(1)
})

test('a key that is already queued or readded is not counted as added', async () => {
  const { queue, metrics } = open()
  const added = async () => (await metrics.queueAdds.get()).values[0]?.value
  queue.add('a')
  queue.add('a')
  expect(await added()).toBe(1)
  await queue.take()
  queue.add('a')
  queue.add('a')
  expect(await added()).toBe(2)
  queue.done('a')
  expect([await queue.take(), await added()]).toEqual(['a', 2])
})

test('100,000 keys may be queued, including readded ones; one more is a defect', async () => {
  const { queue } = open()
  queue.add('busy')
  await queue.take()
  queue.add('busy')
  for (let i = 1; i < 100_000; i++) queue.add(`k${i}`)
  queue.add('busy')
  queue.add('k1') // both are queued already
  expect(() => {
    queue.add('one too many')
  }).toThrow('more than 100000 keys are queued')
  await queue.take()
  queue.add('one too many') // the queue is not full
  expect(queue.depth()).toBe(99_999)
})

test('100,000 keys may be delayed; one of them may be moved earlier', async () => {
  const { queue, scheduler } = open()
  for (let i = 0; i < 100_000; i++) queue.addAfter(`k${i}`, 1000 + i)
  expect(() => {
    queue.addAfter('one too many', 1)
  }).toThrow('more than 100000 keys are delayed')
  queue.addAfter('k99999', 10)
  await scheduler.advance(10)
  expect([queue.depth(), await queue.take()]).toEqual([1, 'k99999'])
  queue.addAfter('one too many', 1) // the queue is not full
})

test('old failures do not change the delays of new ones', async () => {
  const { queue, scheduler } = open()
  for (let i = 0; i < 100; i++) queue.addFailed(`a${i}`)
  await scheduler.advance(60_000)
  for (let i = 0; i < 130; i++) queue.addFailed(`b${i}`)
  await scheduler.advance(10)
  expect(queue.depth()).toBe(100 + 100)
})

test('the metrics report waits, work, retries and the longest unfinished work', async () => {
  const { queue, scheduler, metrics } = open()
  queue.add('a')
  await scheduler.advance(2000)
  await queue.take()
  queue.add('b')
  await scheduler.advance(1000)
  await queue.take()
  await scheduler.advance(4000)
  expect(queue.longestMs()).toBe(5000)
  queue.updateMetrics()
  queue.addFailed('c')
  queue.done('a')
  queue.done('a') // already done
  const exposition = await metrics.registry.metrics()
  const valueOf = (name: string) =>
    new RegExp(`^workqueue_${name}\\{.*\\} (.*)$`, 'm').exec(exposition)?.[1]
  const names = ['unfinished_work_seconds', 'longest_running_processor_seconds', 'retries_total']
  expect(names.map(valueOf)).toEqual(['9', '5', '1'])
  const sums = ['queue_duration_seconds_sum', 'work_duration_seconds_sum']
  expect(sums.map(valueOf)).toEqual(['3', '5'])
  queue.done('b')
  expect(queue.longestMs()).toBe(0)
})
