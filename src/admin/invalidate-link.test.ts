// What has changed is forgotten by the shared cache, whatever becomes of the first time it is told.
import { afterEach, expect, test } from '@jest/globals'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import {
  AGAIN_MS,
  CONFIRM_MS_MAX,
  createLinkForgetter,
  type LinkForgetter,
  QUEUED_MAX,
} from './invalidate-link.ts'

const forgetters: LinkForgetter[] = []

afterEach(async () => {
  for (const forgetter of forgetters.splice(0)) await forgetter.stop()
})

/** A forgetter over a cache that fails so many times, or while it is away. */
function forgetting({ failures = 0 } = {}) {
  const cache = { failures, isAway: false, isBroken: false }
  const clock = { monotonicMs: 0 }
  const told: string[] = []
  const pauses: number[] = []
  const errors: unknown[] = []
  const metrics = createMetrics()
  const forgetter = createLinkForgetter({
    cache: {
      forget(code) {
        told.push(code)
        if (cache.isBroken) return Promise.reject(new TypeError('a defect'))
        if (!cache.isAway && cache.failures-- <= 0) return Promise.resolve()
        return Promise.reject(new StoreError('away', { outcome: 'unknown' }))
      },
    },
    monotonicMs: () => clock.monotonicMs,
    metrics,
    onError: (error) => errors.push(error),
    pause(ms, signal) {
      pauses.push(ms)
      clock.monotonicMs += ms
      // A turn, so that one who repeats for ever lets others go on.
      return signal?.aborted === true ? Promise.resolve() : new Promise((go) => setImmediate(go))
    },
  })
  forgetters.push(forgetter)
  const figures = async () => {
    const queued = (await metrics.linkForgetsQueued.get()).values[0]?.value
    const dropped = (await metrics.linkForgetsDropped.get()).values[0]?.value
    return { queued, dropped }
  }
  return { cache, clock, told, pauses, errors, forgetter, figures }
}

/** Until a condition holds, by turns of the event loop. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let turns = 0; !(await holds()); turns++) {
    if (turns > 1000) throw new Error('it never holds')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('forget() tells the cache once, and is done', async () => {
  const { told, pauses, forgetter, figures } = forgetting()
  await forgetter.forget('a')
  expect([told, pauses]).toEqual([['a'], []])
  expect(await figures()).toMatchObject({ queued: 0 })
})

test('what was not answered is repeated until it is, ever more slowly', async () => {
  const { told, pauses, forgetter, figures } = forgetting({ failures: 12 })
  await forgetter.forget('a')
  expect(told).toEqual(['a'])
  expect(await figures()).toMatchObject({ queued: 1 })
  await until(async () => (await figures()).queued === 0)
  expect(told).toHaveLength(13)
  expect(pauses.slice(0, 8)).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000])
})

test('a code that waits is told once for all its changes', async () => {
  const { cache, told, forgetter, figures } = forgetting()
  cache.isAway = true
  await Promise.all(['a', 'b', 'a'].map((code) => forgetter.forget(code)))
  expect(await figures()).toMatchObject({ queued: 2 })
  cache.isAway = false
  told.length = 0
  await until(async () => (await figures()).queued === 0)
  expect([...told].sort()).toEqual(['a', 'b'])
})

test('what waits is bounded: the oldest is given up, and counted', async () => {
  const { cache, told, forgetter, figures } = forgetting()
  cache.isAway = true
  const codes = Array.from({ length: QUEUED_MAX + 2 }, (_, i) => `c${String(i)}`)
  await Promise.all(codes.map((code) => forgetter.forget(code)))
  expect(await figures()).toEqual({ queued: QUEUED_MAX, dropped: 2 })
  cache.isAway = false
  told.length = 0
  await until(async () => (await figures()).queued === 0)
  expect(new Set(told)).toEqual(new Set(codes.slice(2)))
})

test('confirm() tells the cache twice, a second apart', async () => {
  const { told, pauses, forgetter } = forgetting()
  expect(await forgetter.confirm('a')).toBe(true)
  expect([told, pauses]).toEqual([['a', 'a'], [AGAIN_MS]])
})

test('confirm() tries again, for its time', async () => {
  const { told, forgetter } = forgetting({ failures: 3 })
  expect(await forgetter.confirm('a')).toBe(true)
  expect(told).toHaveLength(5)
})

test('confirm() that is in vain says so in its time, and is repeated all the same', async () => {
  const { cache, clock, told, forgetter, figures } = forgetting()
  cache.isAway = true
  expect(await forgetter.confirm('a')).toBe(false)
  expect(clock.monotonicMs).toBeLessThan(CONFIRM_MS_MAX * 2)
  expect(await figures()).toMatchObject({ queued: 1 })
  cache.isAway = false
  told.length = 0
  await until(async () => (await figures()).queued === 0)
  expect(told).toEqual(['a'])
})

test('confirm() whose second time is in vain says so', async () => {
  const { cache, told, forgetter } = forgetting()
  const confirming = forgetter.confirm('a')
  await until(() => Promise.resolve(told.length === 1))
  cache.isAway = true
  expect(await confirming).toBe(false)
})

test('stop() says once more what is not confirmed', async () => {
  const { cache, told, forgetter, figures } = forgetting()
  cache.isAway = true
  await Promise.all(['a', 'b'].map((code) => forgetter.forget(code)))
  cache.isAway = false
  told.length = 0
  await forgetter.stop()
  expect([...told].sort()).toEqual(['a', 'b'])
  expect(await figures()).toMatchObject({ queued: 0 })
})

test('stop() does not wait for a cache that stays away', async () => {
  const { cache, forgetter, figures } = forgetting()
  cache.isAway = true
  await forgetter.forget('a')
  await forgetter.stop()
  expect(await figures()).toMatchObject({ queued: 1 })
})

test('a defect of the cache is told, and counts as no answer', async () => {
  const { cache, errors, forgetter, figures } = forgetting()
  cache.isBroken = true
  await forgetter.forget('a')
  expect(errors).toEqual([expect.any(TypeError)])
  cache.isBroken = false
  await until(async () => (await figures()).queued === 0)
})

test('confirm() of a forgetter that stops ends at once, and is not confirmed', async () => {
  const { cache, told, pauses, forgetter } = forgetting()
  const confirming = forgetter.confirm('a') // between its first time and its second
  await until(() => Promise.resolve(pauses.includes(AGAIN_MS)))
  await forgetter.stop()
  expect(await confirming).toBe(false)
  cache.isAway = true
  const before = told.length
  expect(await forgetter.confirm('b')).toBe(false)
  expect(told.slice(before).filter((code) => code === 'b').length).toBeLessThan(4)
})

test('while the cache stays away it is asked for one code at a time', async () => {
  const { cache, told, pauses, forgetter } = forgetting()
  cache.isAway = true
  await Promise.all(Array.from({ length: 150 }, (_, i) => forgetter.forget(`c${String(i)}`)))
  pauses.length = told.length = 0
  await until(() => Promise.resolve(pauses.length === 4))
  // The first round may have been under way; each later one asks for a single code.
  expect(told.length).toBeGreaterThan(0)
  expect(told.length).toBeLessThanOrEqual(100 + 3)
})

test('codes are told to a cache that recovered a hundred at a time', async () => {
  const { cache, told, pauses, forgetter, figures } = forgetting()
  cache.isAway = true
  await Promise.all(Array.from({ length: 250 }, (_, i) => forgetter.forget(`c${String(i)}`)))
  cache.isAway = false
  told.length = pauses.length = 0
  await until(async () => (await figures()).queued === 0)
  expect(told).toHaveLength(250)
  expect(pauses).toHaveLength(2) // between three rounds
  cache.failures = 1
  await forgetter.forget('later') // a queue that was emptied is begun again
  await until(async () => (await figures()).queued === 0)
  expect(told.slice(250)).toEqual(['later', 'later'])
})
