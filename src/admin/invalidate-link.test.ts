// Changed links are invalidated in the shared cache, even if the first attempt fails.
import { afterEach, expect, test } from '@jest/globals'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import {
  CONFIRM_DELAY_MS,
  CONFIRM_MS_MAX,
  createCacheInvalidator,
  type CacheInvalidator,
  QUEUED_MAX,
} from './invalidate-link.ts'

const invalidators: CacheInvalidator[] = []

afterEach(async () => {
  for (const invalidator of invalidators.splice(0)) await invalidator.stop()
})

/** An invalidator over a cache that fails `failures` times, or while it is down. */
function setUp({ failures = 0 } = {}) {
  const cache = { failures, isDown: false, isBroken: false }
  const clock = { monotonicMs: 0 }
  const calls: string[] = []
  const pauses: number[] = []
  const errors: unknown[] = []
  const metrics = createMetrics()
  const invalidator = createCacheInvalidator({
    cache: {
      invalidate(code) {
        calls.push(code)
        if (cache.isBroken) return Promise.reject(new TypeError('a defect'))
        if (!cache.isDown && cache.failures-- <= 0) return Promise.resolve()
        return Promise.reject(new StoreError('down', { outcome: 'unknown' }))
      },
    },
    monotonicMs: () => clock.monotonicMs,
    metrics,
    onError: (error) => errors.push(error),
    pause(ms, signal) {
      pauses.push(ms)
      clock.monotonicMs += ms
      // Yields to the event loop, so that endless retries do not block other tasks.
      return signal?.aborted === true
        ? Promise.resolve()
        : new Promise((resolve) => setImmediate(resolve))
    },
  })
  invalidators.push(invalidator)
  const queueMetrics = async () => {
    const queued = (await metrics.linkCacheInvalidationsQueued.get()).values[0]?.value
    const dropped = (await metrics.linkCacheInvalidationsDropped.get()).values[0]?.value
    return { queued, dropped }
  }
  return { cache, clock, calls, pauses, errors, invalidator, queueMetrics }
}

/** Waits for a condition, checked once per event loop turn. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let turns = 0; !(await condition()); turns++) {
    if (turns > 1000) throw new Error('the condition did not become true')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('invalidate() calls the cache once', async () => {
  const { calls, pauses, invalidator, queueMetrics } = setUp()
  await invalidator.invalidate('a')
  expect([calls, pauses]).toEqual([['a'], []])
  expect(await queueMetrics()).toMatchObject({ queued: 0 })
})

test('unconfirmed invalidations are retried with back-off', async () => {
  const { calls, pauses, invalidator, queueMetrics } = setUp({ failures: 12 })
  await invalidator.invalidate('a')
  expect(calls).toEqual(['a'])
  expect(await queueMetrics()).toMatchObject({ queued: 1 })
  await until(async () => (await queueMetrics()).queued === 0)
  expect(calls).toHaveLength(13)
  expect(pauses.slice(0, 8)).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000])
})

test('a queued code is invalidated once for all its changes', async () => {
  const { cache, calls, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  await Promise.all(['a', 'b', 'a'].map((code) => invalidator.invalidate(code)))
  expect(await queueMetrics()).toMatchObject({ queued: 2 })
  cache.isDown = false
  calls.length = 0
  await until(async () => (await queueMetrics()).queued === 0)
  expect([...calls].sort()).toEqual(['a', 'b'])
})

test('the queue is bounded: the oldest code is dropped and counted', async () => {
  const { cache, calls, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  const codes = Array.from({ length: QUEUED_MAX + 2 }, (_, i) => `c${String(i)}`)
  await Promise.all(codes.map((code) => invalidator.invalidate(code)))
  expect(await queueMetrics()).toEqual({ queued: QUEUED_MAX, dropped: 2 })
  cache.isDown = false
  calls.length = 0
  await until(async () => (await queueMetrics()).queued === 0)
  expect(new Set(calls)).toEqual(new Set(codes.slice(2)))
})

test('confirm() invalidates twice, a second apart', async () => {
  const { calls, pauses, invalidator } = setUp()
  expect(await invalidator.confirm('a')).toBe(true)
  expect([calls, pauses]).toEqual([['a', 'a'], [CONFIRM_DELAY_MS]])
})

test('confirm() retries until its deadline', async () => {
  const { calls, invalidator } = setUp({ failures: 3 })
  expect(await invalidator.confirm('a')).toBe(true)
  expect(calls).toHaveLength(5)
})

test('a failed confirm() resolves to false within the deadline, and is retried', async () => {
  const { cache, clock, calls, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  expect(await invalidator.confirm('a')).toBe(false)
  expect(clock.monotonicMs).toBeLessThan(CONFIRM_MS_MAX * 2)
  expect(await queueMetrics()).toMatchObject({ queued: 1 })
  cache.isDown = false
  calls.length = 0
  await until(async () => (await queueMetrics()).queued === 0)
  expect(calls).toEqual(['a'])
})

test('confirm() resolves to false if its second invalidation fails', async () => {
  const { cache, calls, invalidator } = setUp()
  const confirming = invalidator.confirm('a')
  await until(() => Promise.resolve(calls.length === 1))
  cache.isDown = true
  expect(await confirming).toBe(false)
})

test('stop() retries unconfirmed invalidations once', async () => {
  const { cache, calls, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  await Promise.all(['a', 'b'].map((code) => invalidator.invalidate(code)))
  cache.isDown = false
  calls.length = 0
  await invalidator.stop()
  expect([...calls].sort()).toEqual(['a', 'b'])
  expect(await queueMetrics()).toMatchObject({ queued: 0 })
})

test('stop() also retries all of them after several failures', async () => {
  const { cache, calls, pauses, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  const codes = Array.from({ length: 150 }, (_, i) => `c${String(i + 100)}`)
  await Promise.all(codes.map((code) => invalidator.invalidate(code)))
  await until(() => Promise.resolve(pauses.length === 4)) // one code is tried at a time
  cache.isDown = false
  calls.length = 0
  await invalidator.stop()
  expect([...calls].sort()).toEqual(codes)
  expect(await queueMetrics()).toMatchObject({ queued: 0 })
})

test('stop() does not wait for a cache that stays down', async () => {
  const { cache, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  await invalidator.invalidate('a')
  await invalidator.stop()
  expect(await queueMetrics()).toMatchObject({ queued: 1 })
})

test('a defect of the cache is reported and counts as unconfirmed', async () => {
  const { cache, errors, invalidator, queueMetrics } = setUp()
  cache.isBroken = true
  await invalidator.invalidate('a')
  expect(errors).toEqual([expect.any(TypeError)])
  cache.isBroken = false
  await until(async () => (await queueMetrics()).queued === 0)
})

test('confirm() of a stopping invalidator resolves to false immediately', async () => {
  const { cache, calls, pauses, invalidator } = setUp()
  const confirming = invalidator.confirm('a') // between its first and its second invalidation
  await until(() => Promise.resolve(pauses.includes(CONFIRM_DELAY_MS)))
  await invalidator.stop()
  expect(await confirming).toBe(false)
  cache.isDown = true
  const before = calls.length
  expect(await invalidator.confirm('b')).toBe(false)
  expect(calls.slice(before).filter((code) => code === 'b').length).toBeLessThan(4)
})

test('while the cache stays down, one code is tried at a time', async () => {
  const { cache, calls, pauses, invalidator } = setUp()
  cache.isDown = true
  await Promise.all(Array.from({ length: 150 }, (_, i) => invalidator.invalidate(`c${String(i)}`)))
  pauses.length = calls.length = 0
  await until(() => Promise.resolve(pauses.length === 4))
  // The first round may be in flight; each later one tries a single code.
  expect(calls.length).toBeGreaterThan(0)
  expect(calls.length).toBeLessThanOrEqual(100 + 3)
})

test('after a recovery, codes are invalidated a hundred at a time', async () => {
  const { cache, calls, pauses, invalidator, queueMetrics } = setUp()
  cache.isDown = true
  await Promise.all(Array.from({ length: 250 }, (_, i) => invalidator.invalidate(`c${String(i)}`)))
  cache.isDown = false
  calls.length = pauses.length = 0
  await until(async () => (await queueMetrics()).queued === 0)
  expect(calls).toHaveLength(250)
  expect(pauses).toHaveLength(2) // between three rounds
  cache.failures = 1
  await invalidator.invalidate('later') // an emptied queue is restarted
  await until(async () => (await queueMetrics()).queued === 0)
  expect(calls.slice(250)).toEqual(['later', 'later'])
})
