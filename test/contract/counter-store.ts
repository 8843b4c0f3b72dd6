// The contract of a counter store, for each algorithm: the guarantees of
// src/limits/counter-store.ts as tests. counter-store.test.ts lists the stores.
import { describe, expect, test } from '@jest/globals'
import type { Algorithm, Decision } from '../../src/limits/algorithm.ts'
import { algorithms } from '../../src/limits/algorithms.ts'
import {
  algorithmOf,
  fill,
  newUpdate,
  REQUESTS,
  type OpenedCounterStore,
  capacityOf,
  type Use,
  useOf,
  WINDOW_US,
} from './counter-use.ts'
import { defineChanges } from './counter-changes.ts'
import { openCase } from './open-case.ts'

/** A store that the contract is run on. */
export interface CounterStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedCounterStore>
}

const HITS_MAX = 2 ** 32 - 1
const HOUR_US = 3_600_000_000

/** The capacity, and the wait for the next hit if it is exhausted after a quarter of a window. */
const examples = [
  ['fixed_window', REQUESTS, 750_000_000],
  ['sliding_window_log', REQUESTS, WINDOW_US],
  ['sliding_window_counter', REQUESTS, 850_000_000], // a tenth of the next window overlaps this one
  ['token_bucket', REQUESTS, 100_000_000],
  ['leaky_bucket', 1, 100_000_000],
] as const

/** Defines the tests of one store. */
export function defineCounterStoreTests({ name, open }: CounterStoreCase): void {
  describe(name, () => {
    const use = useOf(openCase({ name, open }))
    describe.each(algorithms.map((algorithm) => [algorithm.name, algorithm] as const))(
      '%s',
      (_, algorithm) => {
        defineHits(algorithm, use)
        defineChanges(algorithm, use)
        defineTime(algorithm, use)
        defineClockSteps(algorithm, use)
        defineCalls(algorithm, use)
      },
    )
    defineVetoes(use)
    defineExamples(use)
  })
}

function defineHits(algorithm: Algorithm, use: Use): void {
  const capacity = capacityOf(algorithm)

  test('admits hits up to the limit, reports the remainder, and denies further hits', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    for (let remaining = capacity - 1; remaining >= 0; remaining--) {
      const admitted = { admitted: true, remaining, over: 0, retryAfterUs: 0 }
      expect(await use.one(update)).toMatchObject(admitted)
    }
    const denied = { admitted: false, remaining: 0, over: 1 }
    expect(await use.one(update)).toMatchObject(denied)
    expect(await use.one(newUpdate(algorithm))).toMatchObject({ admitted: true })
  })

  test('a peek consumes nothing, and returns whether one hit would be admitted', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    const peek = { ...update, hits: 0 }
    expect(await use.one(peek)).toMatchObject({ admitted: true, remaining: capacity })
    expect(await use.one(peek)).toMatchObject({ admitted: true, remaining: capacity })
    await fill(use, update)
    expect(await use.one(peek)).toMatchObject({ admitted: false, remaining: 0, over: 0 })
  })

  test('refunded hits can be consumed, up to the number of consumed hits', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    await fill(use, update)
    expect(await use.one({ ...update, hits: -1 })).toMatchObject({ admitted: true, remaining: 1 })
    expect(await use.one(update)).toMatchObject({ admitted: true, remaining: 0 })
    const all = { ...update, hits: -HITS_MAX }
    expect(await use.one(all)).toMatchObject({ admitted: true, remaining: capacity })
    expect(await use.one({ ...update, hits: 0 })).toMatchObject({ remaining: capacity })
  })

  test('concurrent callers never exceed the limit', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    const decisions = await Promise.all(Array.from({ length: 200 }, () => use.one(update)))
    expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(capacity)
  })

  test('hits beyond any limit are denied with an infinite wait, and consume nothing', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    const denied = { admitted: false, over: HITS_MAX, retryAfterUs: Infinity, remaining: capacity }
    expect(await use.one({ ...update, hits: HITS_MAX })).toMatchObject(denied)
    expect(await use.one(update)).toMatchObject({ admitted: true, remaining: capacity - 1 })
  })

  test('a limit of 0 denies every hit', async () => {
    use.resetClock()
    const update = newUpdate(algorithm, { requests: 0 })
    const denied = { admitted: false, remaining: 0, retryAfterUs: Infinity }
    expect(await use.one(update)).toMatchObject(denied)
    await use.one({ ...update, hits: -5 })
    use.wait(3 * WINDOW_US)
    expect(await use.one(update)).toMatchObject(denied) // neither a refund nor time changes it
  })
}

function defineTime(algorithm: Algorithm, use: Use): void {
  test('a retry after the reported wait is admitted, an earlier one is denied', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    use.wait(WINDOW_US / 4)
    await fill(use, update)
    use.wait(1)
    const { retryAfterUs } = await use.one(update)
    use.wait(retryAfterUs - 1)
    expect(await use.one(update)).toMatchObject({ admitted: false, retryAfterUs: 1 })
    use.wait(1)
    expect(await use.one(update)).toMatchObject({ admitted: true })
  })

  test('after the reset the counter behaves like a new one', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    await fill(use, update)
    const { resetUs } = await use.one({ ...update, hits: 0 })
    use.wait(resetUs)
    const peek = await use.one({ ...update, hits: 0 })
    expect(peek).toMatchObject({ admitted: true, remaining: capacityOf(algorithm) })
  })

  test('a clock that is set back admits no hits', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    use.wait(WINDOW_US / 2)
    await fill(use, update)
    use.wait(-WINDOW_US / 4)
    expect(await use.one(update)).toMatchObject({ admitted: false })
  })
}

function defineClockSteps(algorithm: Algorithm, use: Use): void {
  test('a clock that was an hour ahead denies for two windows at most', async () => {
    use.resetClock()
    const windowUs = WINDOW_US / 100
    const update = newUpdate(algorithm, { windowUs })
    use.wait(HOUR_US)
    await fill(use, update)
    use.wait(-HOUR_US)
    const denied = await use.one(update)
    expect(denied).toMatchObject({ admitted: false, remaining: 0 })
    expect(denied.retryAfterUs).toBeLessThanOrEqual(2 * windowUs)
    use.wait(denied.retryAfterUs) // of the state that the denied call stored
    expect(await use.one(update)).toMatchObject({ admitted: true })
  })

  test('a clock that is set forward an hour has the effect of an elapsed hour', async () => {
    use.resetClock()
    const update = newUpdate(algorithm, { windowUs: WINDOW_US / 100 })
    await fill(use, update)
    use.wait(HOUR_US)
    const peek = await use.one({ ...update, hits: 0 })
    expect(peek).toMatchObject({ remaining: capacityOf(algorithm) })
  })
}

function defineCalls(algorithm: Algorithm, use: Use): void {
  const capacity = capacityOf(algorithm)

  test('a counter that is listed twice in a call counts twice', async () => {
    use.resetClock()
    const update = newUpdate(algorithm)
    const updates = Array.from({ length: capacity }, () => update)
    const decisions = await use.consume(updates)
    const remaining = updates.map((_, at) => capacity - 1 - at)
    expect(decisions.map((decision) => decision.remaining)).toEqual(remaining)
    expect(await use.one(update)).toMatchObject({ admitted: false })
  })

  test('a denied call consumes nothing, also from a counter that is listed twice', async () => {
    use.resetClock()
    const [update, full] = [newUpdate(algorithm), newUpdate(algorithm)]
    await fill(use, full)
    const decisions = await use.consume([update, full, update])
    expect(decisions[0]).toMatchObject({ admitted: true, remaining: capacity })
    expect(decisions[1]).toMatchObject({ admitted: false, over: 1 })
    expect(await use.one({ ...update, hits: 0 })).toMatchObject({ remaining: capacity })
    const twice = Array.from({ length: capacity + 1 }, () => update)
    expect((await use.consume(twice)).at(-1)).toMatchObject({ admitted: false })
    expect(await use.one({ ...update, hits: 0 })).toMatchObject({ remaining: capacity })
  })

  test('a denied call consumes if denyConsumes is set, and always refunds', async () => {
    use.resetClock()
    const full = newUpdate(algorithm)
    const counted = newUpdate(algorithm, { denyConsumes: true })
    const refunded = newUpdate(algorithm)
    await fill(use, full)
    await fill(use, refunded)
    await use.consume([counted, { ...refunded, hits: -1 }, full])
    expect(await use.one({ ...counted, hits: 0 })).toMatchObject({ remaining: capacity - 1 })
    expect(await use.one({ ...refunded, hits: 0 })).toMatchObject({ remaining: 1 })
  })

  test('a call may have 10,000 updates', async () => {
    use.resetClock()
    const limit = newUpdate(algorithm).limit
    const updates = Array.from({ length: 10_000 }, () => ({ ...newUpdate(algorithm), limit }))
    const decisions = await use.consume(updates)
    expect(decisions).toHaveLength(10_000)
    expect(decisions.every(({ admitted }) => admitted)).toBe(true)
  })
}

function defineVetoes(use: Use): void {
  const pairs = algorithms.flatMap((one) =>
    algorithms.map((other) => ({ title: `${one.name} and ${other.name}`, one, other })),
  )
  test.each(pairs)('$title: the vetoes never and together', async ({ one, other }) => {
    use.resetClock()
    const free = newUpdate(one)
    const never = { ...newUpdate(other), veto: 'never' as const }
    await fill(use, never)
    expect((await use.consume([free, never]))[1]).toMatchObject({ admitted: false })
    expect(await use.one({ ...free, hits: 0 })).toMatchObject({ remaining: capacityOf(one) - 1 })

    const [first, second] = [newUpdate(one), newUpdate(other)].map((update) => ({
      ...update,
      veto: 'together' as const,
    }))
    if (first === undefined || second === undefined) throw new Error('two updates are expected')
    await fill(use, second)
    const decisions = await use.consume([first, second])
    expect(decisions.map(({ admitted }) => admitted)).toEqual([true, false])
    expect(await use.one({ ...first, hits: 0 })).toMatchObject({ remaining: capacityOf(one) - 1 })
  })

  test('a call without updates has no decisions', async () => {
    expect(await use.consume([])).toEqual([])
  })
}

function defineExamples(use: Use): void {
  test.each(examples)('%s admits %d hits, then reports a wait of %d µs', async (...example) => {
    const [name, capacity, retryAfterUs] = example
    use.resetClock()
    const update = newUpdate(algorithmOf(name))
    use.wait(WINDOW_US / 4)
    for (let hit = 0; hit < capacity; hit++) {
      expect(await use.one(update)).toMatchObject({ admitted: true })
    }
    expect(await use.one(update)).toMatchObject({ admitted: false, retryAfterUs })
  })

  test('the token bucket of the specification: capacity 10, refill 1 per second', async () => {
    use.resetClock()
    const limit = { requests: 1, windowUs: 1_000_000, burst: 10 }
    const hit = newUpdate(algorithmOf('token_bucket'), limit)
    const countAdmitted = async (count: number) => {
      const decisions: Decision[] = []
      for (let i = 0; i < count; i++) decisions.push(await use.one(hit))
      return decisions.filter(({ admitted }) => admitted).length
    }
    expect(await countAdmitted(12)).toBe(10)
    use.wait(10_000_000)
    expect(await countAdmitted(12)).toBe(10)
    for (let second = 0; second < 10; second++) {
      let admitted = 0
      for (let tenth = 0; tenth < 10; tenth++) {
        use.wait(100_000)
        admitted += await countAdmitted(1)
      }
      expect(admitted).toBe(1)
    }
  })
}
