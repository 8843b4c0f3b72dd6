// The memory store decides as decideTogether does, despite its fast path, and is bounded.
import { expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { LRUCache } from 'lru-cache'
import type { CounterState } from '../../limits/algorithm.ts'
import { algorithms } from '../../limits/algorithms.ts'
import type { CounterUpdate, Veto } from '../../limits/counter-store.ts'
import { decideTogether } from '../../limits/decide-together.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { createMemoryCounterStore } from './counter-store.ts'

const KEYS = 3
const START_US = 1_790_000_000_000_000

/** The simplest store: decides with decideTogether, and deletes expired counters on access. */
function createModel(nowUs: () => number) {
  const counters = new Map<string, { state: CounterState; expiresAtUs: number }>()
  return (updates: readonly CounterUpdate[]) => {
    const atUs = nowUs()
    for (const { key } of updates) {
      if ((counters.get(key)?.expiresAtUs ?? Infinity) <= atUs) counters.delete(key)
    }
    const stateOf = (key: string) => counters.get(key)?.state
    const { decisions, changes } = decideTogether(updates, atUs, stateOf)
    for (const [key, { state, expiresInUs }] of changes) {
      if (expiresInUs > 0) counters.set(key, { state, expiresAtUs: atUs + expiresInUs })
      else counters.delete(key)
    }
    return decisions
  }
}

const shapes = fc.record({
  algorithm: fc.constantFrom(...algorithms),
  requests: fc.integer({ min: 0, max: 6 }),
  windowUs: fc.constantFrom(1_000_000, 7_000_003),
  denyConsumes: fc.boolean(),
})
const counts = fc.array(
  fc.record({
    key: fc.integer({ min: 0, max: KEYS - 1 }),
    hits: fc.integer({ min: -2, max: 4 }),
    veto: fc.constantFrom<Veto>('alone', 'together', 'never'),
  }),
  { maxLength: 3 },
)
const history = fc.array(
  fc.record({ waitUs: fc.integer({ min: -500_000, max: 4_000_000 }), counts }),
  { maxLength: 40 },
)

test('calls with any number of updates are decided as in the model', () => {
  const limited = fc.array(shapes, { minLength: KEYS, maxLength: KEYS })
  fc.assert(
    fc.property(limited, history, (counters, steps) => {
      let nowUs = START_US
      const store = createMemoryCounterStore({ nowUs: () => nowUs })
      const model = createModel(() => nowUs)
      for (const step of steps) {
        nowUs += step.waitUs
        const call = step.counts.flatMap(({ key, hits, veto }) => {
          const counter = counters[key]
          if (counter === undefined) return []
          const { algorithm, ...shape } = counter
          const limit = { ...shape, burst: shape.requests }
          return [{ key: String(key), algorithm, limit, hits, veto, isPerSecond: false }]
        })
        expect(store.consumeNow(call)).toEqual(model(call))
      }
    }),
    { numRuns: 300 },
  )
})

function hit(key: string): CounterUpdate {
  const limit = { requests: 10, windowUs: 1_000_000, burst: 10, denyConsumes: false }
  return { key, algorithm: fixedWindow, limit, hits: 1, veto: 'alone', isPerSecond: false }
}

function bucketHit(key: string): CounterUpdate {
  return { ...hit(key), algorithm: tokenBucket }
}

test('the store never exceeds its maximum of counters, and keeps those in use', () => {
  const store = createMemoryCounterStore({ nowUs: () => START_US, countersMax: 100 })
  for (let i = 0; i < 10_000; i++) {
    store.consumeNow([hit(`key ${String(i)}`)])
    if (i % 50 === 0 && i < 500) store.consumeNow([hit('used')])
    expect(store.counterCount()).toBeLessThanOrEqual(100)
    if (i === 500) expect(store.consumeNow([hit('used')])[0]?.remaining).toBe(0)
  }
  expect(store.counterCount()).toBe(100)
})

test('the store holds 100,000 counters by default', () => {
  const store = createMemoryCounterStore({ nowUs: () => START_US })
  for (let i = 0; i < 100_001; i++) store.consumeNow([hit(String(i))])
  expect(store.counterCount()).toBe(100_000)
})

test('an expired counter is overwritten: nothing is deleted or cleared', () => {
  const removals = [
    jest.spyOn(LRUCache.prototype, 'delete'),
    jest.spyOn(LRUCache.prototype, 'clear'),
  ]
  let nowUs = START_US
  const store = createMemoryCounterStore({ nowUs: () => nowUs })
  const remaining = (...updates: readonly CounterUpdate[]) =>
    store.consumeNow(updates).map((decision) => decision.remaining)
  expect(remaining(hit('a'))).toEqual([9])
  nowUs += 1_000_000
  expect(remaining({ ...hit('a'), hits: 0 })).toEqual([10])
  expect(remaining(hit('a'))).toEqual([9])
  expect(remaining({ ...hit('a'), hits: -1 })).toEqual([10])
  nowUs += 1_000_000
  expect(remaining(hit('a'), hit('a'), { ...hit('a'), hits: -2 })).toEqual([9, 8, 10])
  nowUs += 1_000_000
  expect(remaining(bucketHit('b'))).toEqual([9])
  expect(remaining({ ...bucketHit('b'), hits: -1 })).toEqual([10])
  expect(remaining({ ...bucketHit('b'), hits: -1 }, bucketHit('b'))).toEqual([10, 9])
  expect(store.counterCount()).toBe(2)
  for (const removal of removals) expect(removal).not.toHaveBeenCalled()
  jest.restoreAllMocks()
})

test('a peek or refund of an unused counter stores no counter', () => {
  const store = createMemoryCounterStore({ nowUs: () => START_US })
  store.consumeNow([{ ...bucketHit('b'), hits: 0 }])
  store.consumeNow([{ ...bucketHit('b'), hits: -1 }])
  expect(store.counterCount()).toBe(0)
})

test('consume() decides as consumeNow() does', async () => {
  const store = createMemoryCounterStore({ nowUs: () => START_US })
  expect(await store.consume([hit('a')])).toMatchObject([{ remaining: 9 }])
  expect(store.consumeNow([])).toEqual([])
})

const filling = algorithms.filter(({ drains }) => !drains)

test.each(filling)('a counter of $name is set to a number of remaining hits', (algorithm) => {
  const store = createMemoryCounterStore({ nowUs: () => START_US })
  const update = { ...hit('k'), algorithm }
  const remainingOf = () => store.consumeNow([{ ...update, hits: 0 }])[0]?.remaining
  store.setRemaining(update, 4)
  expect([remainingOf(), store.hasCounter('k'), store.counterCount()]).toEqual([4, true, 1])
  store.setRemaining(update, 7)
  expect(remainingOf()).toBe(7)
  for (const remaining of [10, 12]) {
    store.setRemaining(update, 4)
    store.setRemaining(update, remaining)
    expect(remainingOf()).toBe(10)
  }
})

test('an empty store has no counter', () => {
  const store = createMemoryCounterStore({ nowUs: () => START_US })
  expect([store.hasCounter('k'), store.counterCount()]).toEqual([false, 0])
  store.setRemaining(hit('k'), 10)
  expect(store.counterCount()).toBe(0)
})
