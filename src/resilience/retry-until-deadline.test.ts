// Retries of store calls: which results are retried, how long the pauses are, and when the retries
// stop. The clock is simulated.
import { describe, expect, test } from '@jest/globals'
import {
  createBackOff,
  createRetries,
  fromHalf,
  resultOrFailed,
  resultOrOutcome,
  retryUntilStopped,
} from './retry-until-deadline.ts'
import { StoreError } from './store-error.ts'

const storeError = (outcome: 'not-done' | 'unknown') => new StoreError('down', { outcome })
const failing = (outcome: 'not-done' | 'unknown' = 'unknown') => Promise.reject(storeError(outcome))
const defect = () => Promise.reject(new TypeError('a defect'))

/** A clock that a pause advances, and the pauses so far. */
function simulate(random = 1) {
  const clock = { nowMs: 0 }
  const pauses: number[] = []
  const deps = {
    random: () => random,
    monotonicMs: () => clock.nowMs,
    pause: (ms: number) => {
      pauses.push(ms)
      if (pauses.length > 1000) throw new Error('the retries never stop')
      clock.nowMs += ms
      return Promise.resolve()
    },
  }
  return { clock, pauses, deps }
}

describe('one store call', () => {
  test('returns its result', async () => {
    expect(await resultOrFailed(Promise.resolve('stored'))).toBe('stored')
    expect(await resultOrOutcome(Promise.resolve('stored'))).toBe('stored')
  })

  test('returns that it failed, and reports the error if the caller wants it', async () => {
    const errors: unknown[] = []
    const error = storeError('unknown')
    const onFailure = (each: unknown) => errors.push(each)
    expect(await resultOrFailed(Promise.reject(error), onFailure)).toBe('failed')
    expect(await resultOrFailed(Promise.reject(error))).toBe('failed')
    expect(errors).toEqual([error])
  })

  test.each(['not-done', 'unknown'] as const)('returns the outcome %s', async (outcome) => {
    expect(await resultOrOutcome(failing(outcome))).toBe(outcome)
  })

  test('rejects with a defect', async () => {
    const errors: unknown[] = []
    await expect(resultOrFailed(defect(), (each) => errors.push(each))).rejects.toThrow(TypeError)
    await expect(resultOrOutcome(defect())).rejects.toThrow(TypeError)
    expect(errors).toEqual([])
  })
})

describe('the pauses of a back-off', () => {
  const { signal } = new AbortController()

  test('double from 20 ms to 1 s', async () => {
    const { pauses, deps } = simulate()
    const backOff = createBackOff({ ...deps, signal })
    for (let i = 0; i < 8; i++) await backOff()
    expect(pauses).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000])
  })

  test('have the bounds that the caller sets', async () => {
    const { pauses, deps } = simulate()
    const backOff = createBackOff({ ...deps, signal, pauses: { firstMs: 100, maxMs: 300 } })
    for (let i = 0; i < 4; i++) await backOff()
    expect(pauses).toEqual([100, 200, 300, 300])
  })

  test.each([
    [0, 1],
    [0.024, 1],
    [0.5, 10],
    [0.57, 11],
  ])('are whole milliseconds, at least one: the factor %d causes %d ms', async (factor, ms) => {
    const { pauses, deps } = simulate(factor)
    await createBackOff({ ...deps, signal })()
    expect(pauses).toEqual([ms])
  })

  test('end when the process stops', async () => {
    const stopping = new AbortController()
    const hour = { firstMs: 3_600_000, maxMs: 3_600_000 }
    const waiting = createBackOff({ signal: stopping.signal, random: () => 1, pauses: hour })()
    stopping.abort()
    await waiting
  })

  test('differ between clients unless the caller sets the factor', async () => {
    const { pauses, deps } = simulate()
    const hour = { firstMs: 3_600_000, maxMs: 3_600_000 }
    const { pause } = deps
    for (let i = 0; i < 5; i++) await createBackOff({ pause, signal, pauses: hour })()
    expect(new Set(pauses).size).toBeGreaterThan(1)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3_600_000)
  })
})

test('fromHalf() returns factors from 0.5 to 1', () => {
  const factors = Array.from({ length: 1000 }, fromHalf)
  expect(Math.min(...factors)).toBeGreaterThanOrEqual(0.5)
  expect(Math.max(...factors)).toBeLessThanOrEqual(1)
  expect(Math.min(...factors)).toBeLessThan(0.7)
  expect(Math.max(...factors)).toBeGreaterThan(0.8)
})

describe('retries until the process stops', () => {
  test('return the first result, after failures of both kinds', async () => {
    const { pauses, deps } = simulate()
    const { signal } = new AbortController()
    const errors: unknown[] = []
    const error = storeError('not-done')
    const results = [
      () => Promise.reject(error),
      () => Promise.resolve('failed' as const),
      () => Promise.resolve(undefined),
    ]
    const call = () => results.shift()?.() ?? Promise.resolve('never called')
    const given = { ...deps, signal, onFailure: (each: unknown) => errors.push(each) }
    expect(await retryUntilStopped(given, call)).toBeUndefined()
    expect([pauses, errors]).toEqual([[20, 40], [error]])
  })

  test('reject with a defect, without a retry', async () => {
    const { pauses, deps } = simulate()
    const { signal } = new AbortController()
    await expect(retryUntilStopped({ ...deps, signal }, defect)).rejects.toThrow(TypeError)
    expect(pauses).toEqual([])
  })

  test('return that the process stops, without a further call', async () => {
    const { deps } = simulate()
    const stopping = new AbortController()
    let calls = 0
    const call = () => {
      if (++calls === 3) stopping.abort()
      return failing()
    }
    const given = { ...deps, signal: stopping.signal }
    expect(await retryUntilStopped(given, call)).toBe('stopped')
    expect(await retryUntilStopped(given, call)).toBe('stopped')
    expect(calls).toBe(3)
  })
})

describe('retries until a deadline', () => {
  test('wait between 20 and 320 ms, and not beyond the deadline', async () => {
    const { clock, pauses, deps } = simulate()
    const retries = createRetries(1000, deps)
    const results: boolean[] = []
    while (clock.nowMs < 1000) results.push(await retries.wait())
    expect(pauses).toEqual([20, 40, 80, 160, 320, 320, 60])
    expect(results).toEqual([true, true, true, true, true, true, false])
  })

  test.each([
    ['a millisecond before the deadline', 999, [1]],
    ['at the deadline', 1000, []],
    ['after the deadline', 1001, []],
  ])('that start %s do not exceed it', async (_, nowMs, expected) => {
    const { clock, pauses, deps } = simulate()
    clock.nowMs = nowMs
    expect(await createRetries(1000, deps).wait()).toBe(false)
    expect(pauses).toEqual(expected)
  })

  test('return the first result', async () => {
    const { pauses, deps } = simulate()
    let failures = 3
    const call = () => (failures-- > 0 ? failing() : Promise.resolve(undefined))
    expect(await createRetries(1000, deps).run(call)).toBeUndefined()
    expect(pauses).toEqual([20, 40, 80])
  })

  test('return that all calls failed, the last one before the deadline', async () => {
    const { clock, deps } = simulate()
    const callsAtMs: number[] = []
    const call = () => {
      callsAtMs.push(clock.nowMs)
      return failing()
    }
    expect(await createRetries(1000, deps).run(call)).toBe('failed')
    expect(callsAtMs).toEqual([0, 20, 60, 140, 300, 620, 940])
  })

  test('call once even if the deadline has passed', async () => {
    const { clock, deps } = simulate()
    clock.nowMs = 1000
    expect(await createRetries(1000, deps).run(() => Promise.resolve('read'))).toBe('read')
  })

  test('stop immediately if a call had no effect, or at a defect', async () => {
    const { pauses, deps } = simulate()
    const retries = createRetries(1000, deps)
    expect(await retries.run(() => failing('not-done'))).toBe('failed')
    await expect(retries.run(defect)).rejects.toThrow(TypeError)
    expect(pauses).toEqual([])
  })

  test('wait by the real clock unless the caller replaces the pause', async () => {
    const startMs = performance.now()
    const retries = createRetries(startMs + 30, {
      random: () => 1,
      monotonicMs: () => performance.now(),
    })
    while (await retries.wait()); // until the deadline
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(28)
  })
})
