// The circuit breaker of a store: deadlines, opening after failures, and recovery. With a fake
// clock, so that a busy machine has no effect.
import { afterEach, describe, expect, test } from '@jest/globals'
import { pause } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { type GuardedStore, guardStore, isUndecided } from './guard-store.ts'

type Mode = 'responds' | 'hangs' | 'fails' | 'is slow'

const CALL_MS_MAX = 15
/** The circuit opens after this multiple of CALL_MS_MAX without a response. */
const FAILED_PERIODS_MAX = 5

const breakers: GuardedStore[] = []

afterEach(async () => {
  for (const breaker of breakers.splice(0)) await breaker.stop()
})

/** A store with a variable mode, and the reports of its circuit breaker. */
function createBreaker() {
  const store = { mode: 'responds' as Mode, calls: 0, inFlight: [] as ((error?: Error) => void)[] }
  const clock = { nowMs: 0 }
  const failures: unknown[] = []
  const openChanges: boolean[] = []
  const probeFailures: unknown[] = []
  const behave = <T>(value: T): Promise<T> => {
    if (store.mode === 'hangs') return new Promise<never>(() => undefined)
    if (store.mode === 'responds') return Promise.resolve(value)
    if (store.mode === 'is slow') {
      return new Promise<T>((resolve, reject) => {
        store.inFlight.push((error) => {
          if (error === undefined) resolve(value)
          else reject(error)
        })
      })
    }
    return Promise.reject(new StoreError('unavailable', { outcome: 'unknown' }))
  }
  const breaker = guardStore({
    store: {
      consume: () => {
        store.calls++
        return behave([])
      },
      probe: () => behave(undefined),
    },
    callMsMax: CALL_MS_MAX,
    nowMs: () => clock.nowMs,
    onFailure: (error) => failures.push(error),
    onOpenChange: (isOpen) => openChanges.push(isOpen),
    onProbeFailure: (error) => probeFailures.push(error),
  })
  breakers.push(breaker)
  /** Advances the clock and returns the result of calls; a timer runs their deadline checks. */
  const after = <T>(ms: number, calls: Promise<T>): Promise<T> => {
    clock.nowMs += ms
    return calls
  }
  /** Waits for this number of failures: a timer runs the deadline checks. */
  const failed = async (count: number) => {
    while (failures.length < count) await pause(1)
  }
  const timesOut = async (result: ReturnType<typeof breaker.decide>) => isUndecided(await result)
  const completeAll = (error?: Error) => {
    for (const complete of store.inFlight.splice(0)) complete(error)
  }
  const slowResponses = {
    timesOut,
    completePending: () => {
      completeAll()
    },
    failPending: () => {
      completeAll(new StoreError('unavailable', { outcome: 'unknown' }))
    },
  }
  return {
    store,
    breaker,
    failures,
    openChanges,
    probeFailures,
    after,
    clock,
    failed,
    ...slowResponses,
  }
}

describe.each(['hangs', 'fails'] as const)('a store that %s', (mode) => {
  test('times out, then opens the circuit, which closes when it responds', async () => {
    const { store, breaker, failures, openChanges, after, timesOut } = createBreaker()
    expect(await breaker.decide([])).toEqual([])
    store.mode = mode
    // Immediate failures count once per CALL_MS_MAX; a call that hangs takes that time itself.
    const stepMs = mode === 'hangs' ? CALL_MS_MAX : 1
    while (!breaker.isOpen()) {
      expect(await after(stepMs, timesOut(breaker.decide([])))).toBe(true)
    }
    expect(failures).toHaveLength(
      mode === 'hangs' ? FAILED_PERIODS_MAX : (FAILED_PERIODS_MAX - 1) * CALL_MS_MAX + 1,
    )
    expect(openChanges).toEqual([true])
    const callsBefore = store.calls
    expect(await breaker.decide([])).toEqual({ delayedResult: undefined })
    expect(store.calls).toBe(callsBefore)
    store.mode = 'responds'
    while (breaker.isOpen()) await pause(5)
    expect(openChanges).toEqual([true, false])
    expect(await breaker.decide([])).toEqual([])
  })
})

test('some failures among responses do not open the circuit', async () => {
  const { store, breaker, openChanges, timesOut } = createBreaker()
  for (let round = 0; round < 5; round++) {
    store.mode = 'fails'
    for (let call = 0; call < 4; call++) expect(await timesOut(breaker.decide([]))).toBe(true)
    store.mode = 'responds'
    expect(await breaker.decide([])).toEqual([])
  }
  expect(openChanges).toEqual([])
})

test('calls that time out together, as after a stall, do not open the circuit', async () => {
  const { store, breaker, openChanges, after, timesOut } = createBreaker()
  for (let round = 0; round < 3; round++) {
    store.mode = 'hangs'
    const calls = Array.from({ length: 100 }, () => timesOut(breaker.decide([])))
    expect(await after(CALL_MS_MAX, Promise.all(calls))).toEqual(calls.map(() => true))
    store.mode = 'responds'
    expect(await breaker.decide([])).toEqual([])
  }
  expect(openChanges).toEqual([])
})

describe('a store that responds after the deadline', () => {
  /** A circuit breaker after one response past the deadline. */
  async function slow() {
    const all = createBreaker()
    all.store.mode = 'is slow'
    const first = all.breaker.decide([])
    const result = await all.after(CALL_MS_MAX, first)
    all.completePending()
    expect(isUndecided(result) && (await result.delayedResult)).toEqual([])
    return all
  }

  test('still delivers its results, receives every call and delays none', async () => {
    const { store, breaker, openChanges, clock, failed, completePending } = await slow()
    for (let call = 1; call <= 2 * FAILED_PERIODS_MAX; call++) {
      const callsBefore = store.calls
      const result = await breaker.decide([]) // before its deadline
      expect(store.calls).toBe(callsBefore + 1)
      clock.nowMs += CALL_MS_MAX
      await failed(1 + call)
      completePending()
      expect(isUndecided(result) && (await result.delayedResult)).toEqual([])
    }
    expect([openChanges, breaker.isUnresponsive()]).toEqual([[], false])
  })

  test('is awaited once it has responded within the deadline', async () => {
    const { store, breaker } = await slow()
    store.mode = 'responds'
    const result = await breaker.decide([])
    expect(isUndecided(result) && (await result.delayedResult)).toEqual([])
    expect(await breaker.decide([])).toEqual([])
  })

  test('and then hangs: the circuit opens after 1 s', async () => {
    const { store, breaker, openChanges, clock, failed, timesOut } = await slow()
    store.mode = 'hangs'
    for (let call = 1; openChanges.length === 0; call++) {
      expect(await timesOut(breaker.decide([]))).toBe(true)
      clock.nowMs += 100
      await failed(1 + call)
    }
    expect([openChanges, clock.nowMs]).toEqual([[true], CALL_MS_MAX + 1000])
  })

  test('closes the open circuit with its first response', async () => {
    const { store, breaker, openChanges, after, completePending } = createBreaker()
    store.mode = 'is slow'
    while (!breaker.isOpen()) await after(CALL_MS_MAX, breaker.decide([]))
    store.mode = 'hangs' // its probes
    completePending()
    while (breaker.isOpen()) await pause(1)
    expect(openChanges).toEqual([true, false])
  })

  test('with an error delivers no result', async () => {
    const { store, breaker, after, failPending } = createBreaker()
    store.mode = 'is slow'
    const result = await after(CALL_MS_MAX, breaker.decide([]))
    failPending()
    expect(isUndecided(result) && (await result.delayedResult)).toBeUndefined()
  })
})

test('each failed probe is reported: the cause of an outage may change', async () => {
  const { store, breaker, failures, probeFailures, after } = createBreaker()
  store.mode = 'hangs'
  while (!breaker.isOpen()) await after(CALL_MS_MAX, breaker.decide([]))
  store.mode = 'fails'
  while (probeFailures.length < 2) await pause(5)
  expect([failures.at(-1), probeFailures.at(-1)]).toEqual(['timeout', expect.any(StoreError)])
})

test('stopping the circuit breaker stops its probes', async () => {
  const { store, breaker, openChanges, after } = createBreaker()
  store.mode = 'hangs'
  while (!breaker.isOpen()) await after(CALL_MS_MAX, breaker.decide([]))
  await breaker.stop()
  expect([openChanges, breaker.isOpen()]).toEqual([[true], false])
})
