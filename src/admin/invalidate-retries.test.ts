// The deadline of confirmed invalidations, and retries by the real clock.
import { expect, test } from '@jest/globals'
import { waitFor } from '../../test/kit/wait-for.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { CONFIRM_MS_MAX, createCacheInvalidator } from './invalidate-link.ts'

const down = () => Promise.reject(new StoreError('down', { outcome: 'unknown' }))

/** An invalidator over a cache whose calls are `replies`, and then succeed; its clock is real. */
function setUp(...replies: (() => Promise<void>)[]) {
  const calls: string[] = []
  const errors: unknown[] = []
  const metrics = createMetrics()
  const deps = {
    cache: {
      invalidate(code: string) {
        calls.push(code)
        return replies.shift()?.() ?? Promise.resolve()
      },
    },
    monotonicMs: () => performance.now(),
    metrics,
    onError: (error: unknown) => errors.push(error),
  }
  return { calls, errors, deps }
}

test.each([
  [CONFIRM_MS_MAX - 1, true],
  [CONFIRM_MS_MAX, false],
])('confirm() retries a call that failed after %d ms: %s', async (ms, expected) => {
  let nowMs = 0
  const replyWithDelay = () => {
    nowMs += ms
    return down()
  }
  const { calls, deps } = setUp(replyWithDelay)
  const given = { ...deps, monotonicMs: () => nowMs, pause: () => Promise.resolve() }
  const invalidator = createCacheInvalidator(given)
  expect(await invalidator.confirm('a')).toBe(expected)
  await invalidator.stop()
  expect(calls).toHaveLength(expected ? 3 : 2) // the queue retries what is not confirmed
})

test('a failed invalidation is retried after a pause', async () => {
  const { calls, errors, deps } = setUp(down, down)
  const invalidator = createCacheInvalidator(deps)
  const startMs = performance.now()
  await invalidator.invalidate('a')
  expect(calls).toHaveLength(1)
  await waitFor('the retries', () => calls.length === 3)
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(55)
  await invalidator.stop()
  expect([calls.length, errors]).toEqual([3, []])
})

test('stop() aborts the pause between the calls of confirm()', async () => {
  const { deps } = setUp()
  const pauses: number[] = []
  const pause = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      pauses.push(ms)
      signal?.addEventListener('abort', () => {
        resolve()
      })
    })
  const invalidator = createCacheInvalidator({ ...deps, pause })
  const confirming = invalidator.confirm('a')
  await waitFor('the pause', () => pauses.length === 1)
  await invalidator.stop()
  expect(await confirming).toBe(false)
})

test('a defect of the cache is reported for each call of confirm()', async () => {
  const defect = new TypeError('a defect')
  const { errors, calls, deps } = setUp(
    () => Promise.reject(defect),
    () => Promise.reject(defect),
  )
  const invalidator = createCacheInvalidator({ ...deps, pause: () => Promise.resolve() })
  expect(await invalidator.confirm('a')).toBe(true)
  expect([errors, calls.length]).toEqual([[defect, defect], 4])
})
