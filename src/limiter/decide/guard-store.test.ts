// The guard of a store: deadlines, the silence after failures, and the way back. Its clock is the
// tests' own, so that a busy machine changes nothing.
import { afterEach, describe, expect, test } from '@jest/globals'
import { pause } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { type GuardedStore, guardStore, isUnanswered } from './guard-store.ts'

type Mode = 'answers' | 'hangs' | 'fails' | 'is late'

const CALL_MS_MAX = 15
/** Times as long as a call may take, without an answer in any, before a store is left alone. */
const SPANS = 5

const guards: GuardedStore[] = []

afterEach(async () => {
  for (const guard of guards.splice(0)) await guard.stop()
})

/** A store whose behaviour can be changed, and what its guard told. */
function guarded() {
  const store = { mode: 'answers' as Mode, calls: 0, underWay: [] as ((error?: Error) => void)[] }
  const clock = { nowMs: 0 }
  const failures: unknown[] = []
  const away: boolean[] = []
  const behave = <T>(value: T): Promise<T> => {
    if (store.mode === 'hangs') return new Promise<never>(() => undefined)
    if (store.mode === 'answers') return Promise.resolve(value)
    if (store.mode === 'is late') {
      return new Promise<T>((resolve, reject) => {
        store.underWay.push((error) => {
          if (error === undefined) resolve(value)
          else reject(error)
        })
      })
    }
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
  /** Until so many failures were told: deadlines look at the clock when a timer wakes them. */
  const failed = async (count: number) => {
    while (failures.length < count) await pause(1)
  }
  const isLate = async (answer: ReturnType<typeof guard.charge>) => isUnanswered(await answer)
  const endAll = (error?: Error) => {
    for (const end of store.underWay.splice(0)) end(error)
  }
  const late = {
    isLate,
    answerLate: () => {
      endAll()
    },
    failLate: () => {
      endAll(new StoreError('gone', { outcome: 'unknown' }))
    },
  }
  return { store, guard, failures, away, after, clock, failed, ...late }
}

describe.each(['hangs', 'fails'] as const)('a store that %s', (mode) => {
  test('is not waited for, then left alone, and used again once it answers', async () => {
    const { store, guard, failures, away, after, isLate } = guarded()
    expect(await guard.charge([])).toEqual([])
    store.mode = mode
    // Failures at once count once in the time of a call; a call that hangs takes that time itself.
    const stepMs = mode === 'hangs' ? CALL_MS_MAX : 1
    while (!guard.isAway()) {
      expect(await after(stepMs, isLate(guard.charge([])))).toBe(true)
    }
    expect(failures).toHaveLength(mode === 'hangs' ? SPANS : (SPANS - 1) * CALL_MS_MAX + 1)
    expect(away).toEqual([true])
    const callsBefore = store.calls
    expect(await guard.charge([])).toEqual({ later: undefined })
    expect(store.calls).toBe(callsBefore)
    store.mode = 'answers'
    while (guard.isAway()) await pause(5)
    expect(away).toEqual([true, false])
    expect(await guard.charge([])).toEqual([])
  })
})

test('some failures among answers do not end the calls', async () => {
  const { store, guard, away, isLate } = guarded()
  for (let round = 0; round < 5; round++) {
    store.mode = 'fails'
    for (let call = 0; call < 4; call++) expect(await isLate(guard.charge([]))).toBe(true)
    store.mode = 'answers'
    expect(await guard.charge([])).toEqual([])
  }
  expect(away).toEqual([])
})

test('calls that are late together, as by a pause of our own, end nothing', async () => {
  const { store, guard, away, after, isLate } = guarded()
  for (let round = 0; round < 3; round++) {
    store.mode = 'hangs'
    const calls = Array.from({ length: 100 }, () => isLate(guard.charge([])))
    expect(await after(CALL_MS_MAX, Promise.all(calls))).toEqual(calls.map(() => true))
    store.mode = 'answers'
    expect(await guard.charge([])).toEqual([])
  }
  expect(away).toEqual([])
})

describe('a store that answers late', () => {
  /** A guard that has seen late answers, for so long that a store that hangs were left alone. */
  async function slow() {
    const all = guarded()
    all.store.mode = 'is late'
    const first = all.guard.charge([])
    const answer = await all.after(CALL_MS_MAX, first)
    all.answerLate()
    expect(isUnanswered(answer) && (await answer.later)).toEqual([])
    return all
  }

  test('gives its answer at last, is asked on and not waited for', async () => {
    const { store, guard, away, clock, failed, answerLate } = await slow()
    for (let call = 1; call <= 2 * SPANS; call++) {
      const callsBefore = store.calls
      const answer = await guard.charge([]) // though no deadline has passed
      expect(store.calls).toBe(callsBefore + 1)
      clock.nowMs += CALL_MS_MAX
      await failed(1 + call)
      answerLate()
      expect(isUnanswered(answer) && (await answer.later)).toEqual([])
    }
    expect([away, guard.isSilent()]).toEqual([[], false])
  })

  test('is waited for again once an answer comes in time', async () => {
    const { store, guard } = await slow()
    store.mode = 'answers'
    const answer = await guard.charge([])
    expect(isUnanswered(answer) && (await answer.later)).toEqual([])
    expect(await guard.charge([])).toEqual([])
  })

  test('and then hangs is left alone after a second', async () => {
    const { store, guard, away, clock, failed, isLate } = await slow()
    store.mode = 'hangs'
    for (let call = 1; away.length === 0; call++) {
      expect(await isLate(guard.charge([]))).toBe(true)
      clock.nowMs += 100
      await failed(1 + call)
    }
    expect([away, clock.nowMs]).toEqual([[true], CALL_MS_MAX + 1000])
  })

  test('after it was left alone is used again at its first late answer', async () => {
    const { store, guard, away, after, answerLate } = guarded()
    store.mode = 'is late'
    while (!guard.isAway()) await after(CALL_MS_MAX, guard.charge([]))
    store.mode = 'hangs' // its probes
    answerLate()
    while (guard.isAway()) await pause(1)
    expect(away).toEqual([true, false])
  })

  test('with an error at last gives nothing', async () => {
    const { store, guard, after, failLate } = guarded()
    store.mode = 'is late'
    const answer = await after(CALL_MS_MAX, guard.charge([]))
    failLate()
    expect(isUnanswered(answer) && (await answer.later)).toBeUndefined()
  })
})

test('a guard that is stopped ends its probing', async () => {
  const { store, guard, away, after } = guarded()
  store.mode = 'hangs'
  while (!guard.isAway()) await after(CALL_MS_MAX, guard.charge([]))
  await guard.stop()
  expect([away, guard.isAway()]).toEqual([[true], false])
})
