// The guard of a store: deadlines, the silence after failures, and the way back. Its clock is the
// tests' own, so that a busy machine changes nothing.
import { afterEach, describe, expect, test } from '@jest/globals'
import { pause } from '../process/deadline.ts'
import { StoreError } from '../process/store-error.ts'
import { type GuardedStore, guardStore } from './guard-store.ts'

type Mode = 'answers' | 'hangs' | 'fails'

const CALL_MS_MAX = 15
/** Times as long as a call may take, without an answer in any, before a store is left alone. */
const SPANS = 5

const guards: GuardedStore[] = []

afterEach(async () => {
  for (const guard of guards.splice(0)) await guard.stop()
})

/** A store whose behaviour can be changed, and what its guard told. */
function guarded() {
  const store = { mode: 'answers' as Mode, calls: 0 }
  const clock = { nowMs: 0 }
  const failures: unknown[] = []
  const away: boolean[] = []
  const behave = <T>(value: T): Promise<T> => {
    if (store.mode === 'hangs') return new Promise<never>(() => undefined)
    if (store.mode === 'answers') return Promise.resolve(value)
    return Promise.reject(new StoreError('gone', { outcome: 'unknown' }))
  }
  const guard = guardStore({
    store: {
      charge: () => {
        store.calls++
        return behave([])
      },
      probe: () => behave(undefined),
    },
    callMsMax: CALL_MS_MAX,
    nowMs: () => clock.nowMs,
    onFailure: (why) => failures.push(why),
    onAway: (isAway) => away.push(isAway),
  })
  guards.push(guard)
  /** What calls come to after `ms`; their deadlines look at the clock when a timer wakes them. */
  const after = <T>(ms: number, calls: Promise<T>): Promise<T> => {
    clock.nowMs += ms
    return calls
  }
  return { store, guard, failures, away, after }
}

describe.each(['hangs', 'fails'] as const)('a store that %s', (mode) => {
  test('is not waited for, then left alone, and used again once it answers', async () => {
    const { store, guard, failures, away, after } = guarded()
    expect(await guard.charge([])).toEqual([])
    store.mode = mode
    // Failures at once count once in the time of a call; a call that hangs takes that time itself.
    const stepMs = mode === 'hangs' ? CALL_MS_MAX : 1
    while (!guard.isAway()) {
      expect(await after(stepMs, guard.charge([]))).toBeUndefined()
    }
    expect(failures).toHaveLength(mode === 'hangs' ? SPANS : (SPANS - 1) * CALL_MS_MAX + 1)
    expect(away).toEqual([true])
    const callsBefore = store.calls
    expect(await guard.charge([])).toBeUndefined()
    expect(store.calls).toBe(callsBefore)
    store.mode = 'answers'
    while (guard.isAway()) await pause(5)
    expect(away).toEqual([true, false])
    expect(await guard.charge([])).toEqual([])
  })
})

test('some failures among answers do not end the calls', async () => {
  const { store, guard, away } = guarded()
  for (let round = 0; round < 5; round++) {
    store.mode = 'fails'
    for (let call = 0; call < 4; call++) expect(await guard.charge([])).toBeUndefined()
    store.mode = 'answers'
    expect(await guard.charge([])).toEqual([])
  }
  expect(away).toEqual([])
})

test('calls that are late together, as by a pause of our own, end nothing', async () => {
  const { store, guard, away, after } = guarded()
  for (let round = 0; round < 3; round++) {
    store.mode = 'hangs'
    const calls = Array.from({ length: 100 }, () => guard.charge([]))
    expect(await after(CALL_MS_MAX, Promise.all(calls))).toEqual(calls.map(() => undefined))
    store.mode = 'answers'
    expect(await guard.charge([])).toEqual([])
  }
  expect(away).toEqual([])
})

test('a guard that is stopped ends its probing', async () => {
  const { store, guard, away, after } = guarded()
  store.mode = 'hangs'
  while (!guard.isAway()) await after(CALL_MS_MAX, guard.charge([]))
  await guard.stop()
  expect([away, guard.isAway()]).toEqual([[true], false])
})
