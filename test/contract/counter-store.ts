// What every store of counters must do: the promises of src/limits/counter-store.ts as tests, for
// each algorithm. Knows no store; counter-store.test.ts lists them.
import { describe, expect, test } from '@jest/globals'
import type { Algorithm, Decision } from '../../src/limits/algorithm.ts'
import { algorithms } from '../../src/limits/algorithms.ts'
import {
  fill,
  newCharge,
  type OpenedCounterStore,
  roomOf,
  type Use,
  useOf,
  WINDOW_US,
} from './counter-use.ts'
import { openCase } from './open-case.ts'

/** One member of the list. */
export interface CounterStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedCounterStore>
}

const COST_MAX = 2 ** 32 - 1
const HOUR_US = 3_600_000_000

/** Until one hit more passes, of a limit used up a quarter into a window. */
const WAITS_US: Readonly<Record<string, number>> = {
  fixed_window: 750_000_000,
  sliding_window_log: WINDOW_US,
  sliding_window_counter: 850_000_000, // a tenth of the next window, which still sees this one
  token_bucket: 100_000_000,
  leaky_bucket: 100_000_000,
}

/** Defines the tests of one store. */
export function defineCounterStoreTests({ name, open }: CounterStoreCase): void {
  describe(name, () => {
    const use = useOf(openCase({ name, open }))
    describe.each(algorithms.map((algorithm) => [algorithm.name, algorithm] as const))(
      '%s',
      (_, algorithm) => {
        defineHits(algorithm, use)
        defineTime(algorithm, use)
        defineClockSteps(algorithm, use)
        defineCalls(algorithm, use)
      },
    )
    defineVetoes(use)
    defineWorkedExample(use)
  })
}

function defineHits(algorithm: Algorithm, use: Use): void {
  const room = roomOf(algorithm)

  test('admits what the limit says, telling what remains, and no more', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    for (let left = room - 1; left >= 0; left--) {
      const admitted = { admitted: true, remaining: left, over: 0, retryAfterUs: 0 }
      expect(await use.one(charge)).toMatchObject(admitted)
    }
    const denied = { admitted: false, remaining: 0, over: 1 }
    expect(await use.one(charge)).toMatchObject(denied)
    expect(await use.one(newCharge(algorithm))).toMatchObject({ admitted: true })
  })

  test('a look takes nothing, and says whether there is room', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    const look = { ...charge, cost: 0 }
    expect(await use.one(look)).toMatchObject({ admitted: true, remaining: room })
    expect(await use.one(look)).toMatchObject({ admitted: true, remaining: room })
    await fill(use, charge)
    expect(await use.one(look)).toMatchObject({ admitted: false, remaining: 0, over: 0 })
  })

  test('what is given back can be taken again, and no more than was taken', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    await fill(use, charge)
    expect(await use.one({ ...charge, cost: -1 })).toMatchObject({ admitted: true, remaining: 1 })
    expect(await use.one(charge)).toMatchObject({ admitted: true, remaining: 0 })
    const all = { ...charge, cost: -COST_MAX }
    expect(await use.one(all)).toMatchObject({ admitted: true, remaining: room })
    expect(await use.one({ ...charge, cost: 0 })).toMatchObject({ remaining: room })
  })

  test('concurrent callers never exceed the limit', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    const decisions = await Promise.all(Array.from({ length: 200 }, () => use.one(charge)))
    expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(room)
  })

  test('hits beyond every limit are denied for good, and take nothing', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    const denied = { admitted: false, over: COST_MAX, retryAfterUs: Infinity, remaining: room }
    expect(await use.one({ ...charge, cost: COST_MAX })).toMatchObject(denied)
    expect(await use.one(charge)).toMatchObject({ admitted: true, remaining: room - 1 })
  })

  test('a limit of nothing denies all', async () => {
    use.begin()
    const charge = newCharge(algorithm, { requests: 0 })
    const denied = { admitted: false, remaining: 0, retryAfterUs: Infinity }
    expect(await use.one(charge)).toMatchObject(denied)
    await use.one({ ...charge, cost: -5 })
    use.wait(3 * WINDOW_US)
    expect(await use.one(charge)).toMatchObject(denied) // neither refund nor time undoes it
  })
}

function defineTime(algorithm: Algorithm, use: Use): void {
  test('a limit that is raised lets more through at once, whatever was denied', async () => {
    use.begin()
    const charge = newCharge(algorithm, { requests: 7, burst: 7 })
    for (let hit = 0; hit < 20; hit++) await use.one(charge)
    const { retryAfterUs } = await use.one(charge)
    const raised = { ...charge, limit: { ...charge.limit, requests: 60, burst: 60 } }
    const decision = await use.one(raised)
    expect(decision.retryAfterUs).toBeLessThanOrEqual(retryAfterUs)
    if (algorithm.name !== 'leaky_bucket') {
      expect(decision).toMatchObject({ admitted: true, remaining: 60 - 7 - 1 })
    }
  })

  test('the wait is the one of its own kind of window', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    use.wait(WINDOW_US / 4)
    await fill(use, charge)
    const retryAfterUs = WAITS_US[algorithm.name]
    expect(await use.one(charge)).toMatchObject({ admitted: false, retryAfterUs })
  })

  test('who waits as long as told is admitted, and no sooner', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    use.wait(WINDOW_US / 4)
    await fill(use, charge)
    use.wait(1)
    const { retryAfterUs } = await use.one(charge)
    use.wait(retryAfterUs - 1)
    expect(await use.one(charge)).toMatchObject({ admitted: false, retryAfterUs: 1 })
    use.wait(1)
    expect(await use.one(charge)).toMatchObject({ admitted: true })
  })

  test('after the reset the counter is as new', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    await fill(use, charge)
    const { resetUs } = await use.one({ ...charge, cost: 0 })
    use.wait(resetUs)
    const look = await use.one({ ...charge, cost: 0 })
    expect(look).toMatchObject({ admitted: true, remaining: roomOf(algorithm) })
  })

  test('a clock set back gives nothing', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    use.wait(WINDOW_US / 2)
    await fill(use, charge)
    use.wait(-WINDOW_US / 4)
    expect(await use.one(charge)).toMatchObject({ admitted: false })
  })
}

function defineClockSteps(algorithm: Algorithm, use: Use): void {
  test('a clock that was an hour ahead denies for two windows at most', async () => {
    use.begin()
    const windowUs = WINDOW_US / 100
    const charge = newCharge(algorithm, { windowUs })
    use.wait(HOUR_US)
    await fill(use, charge)
    use.wait(-HOUR_US)
    const denied = await use.one(charge)
    expect(denied).toMatchObject({ admitted: false, remaining: 0 })
    expect(denied.retryAfterUs).toBeLessThanOrEqual(2 * windowUs)
    use.wait(denied.retryAfterUs) // of a state that was kept at that call, not taken at each
    expect(await use.one(charge)).toMatchObject({ admitted: true })
  })

  test('a clock that was set forward an hour is as if the hour had passed', async () => {
    use.begin()
    const charge = newCharge(algorithm, { windowUs: WINDOW_US / 100 })
    await fill(use, charge)
    use.wait(HOUR_US)
    const look = await use.one({ ...charge, cost: 0 })
    expect(look).toMatchObject({ remaining: roomOf(algorithm) })
  })
}

function defineCalls(algorithm: Algorithm, use: Use): void {
  const room = roomOf(algorithm)

  test('a counter named twice in a call is charged twice', async () => {
    use.begin()
    const charge = newCharge(algorithm)
    const charges = Array.from({ length: room }, () => charge)
    const decisions = await use.charge(charges)
    const remaining = charges.map((_, at) => room - 1 - at)
    expect(decisions.map((decision) => decision.remaining)).toEqual(remaining)
    expect(await use.one(charge)).toMatchObject({ admitted: false })
  })

  test('a call that is denied takes nothing, not even from a counter named twice', async () => {
    use.begin()
    const [charge, full] = [newCharge(algorithm), newCharge(algorithm)]
    await fill(use, full)
    const decisions = await use.charge([charge, full, charge])
    expect(decisions[0]).toMatchObject({ admitted: true, remaining: room })
    expect(decisions[1]).toMatchObject({ admitted: false, over: 1 })
    expect(await use.one({ ...charge, cost: 0 })).toMatchObject({ remaining: room })
    const twice = Array.from({ length: room + 1 }, () => charge)
    expect((await use.charge(twice)).at(-1)).toMatchObject({ admitted: false })
    expect(await use.one({ ...charge, cost: 0 })).toMatchObject({ remaining: room })
  })

  test('a call that is denied takes where the limit says so, and always gives back', async () => {
    use.begin()
    const full = newCharge(algorithm)
    const counted = newCharge(algorithm, { denyConsumes: true })
    const given = newCharge(algorithm)
    await fill(use, full)
    await fill(use, given)
    await use.charge([counted, { ...given, cost: -1 }, full])
    expect(await use.one({ ...counted, cost: 0 })).toMatchObject({ remaining: room - 1 })
    expect(await use.one({ ...given, cost: 0 })).toMatchObject({ remaining: 1 })
  })

  test('a call may hold 10,000 charges', async () => {
    use.begin()
    const limit = newCharge(algorithm).limit
    const charges = Array.from({ length: 10_000 }, () => ({ ...newCharge(algorithm), limit }))
    const decisions = await use.charge(charges)
    expect(decisions).toHaveLength(10_000)
    expect(decisions.every(({ admitted }) => admitted)).toBe(true)
  })
}

function defineVetoes(use: Use): void {
  const pairs = algorithms.flatMap((one) =>
    algorithms.map((other) => ({ title: `${one.name} and ${other.name}`, one, other })),
  )
  test.each(pairs)(
    '$title: one that never denies, and two that deny only together',
    async ({ one, other }) => {
      use.begin()
      const free = newCharge(one)
      const never = { ...newCharge(other), veto: 'never' as const }
      await fill(use, never)
      expect((await use.charge([free, never]))[1]).toMatchObject({ admitted: false })
      expect(await use.one({ ...free, cost: 0 })).toMatchObject({ remaining: roomOf(one) - 1 })

      const [first, second] = [newCharge(one), newCharge(other)].map((charge) => ({
        ...charge,
        veto: 'together' as const,
      }))
      if (first === undefined || second === undefined) throw new Error('there are no charges')
      await fill(use, second)
      const passing = await use.charge([first, second])
      expect(passing.map(({ admitted }) => admitted)).toEqual([true, false])
      expect(await use.one({ ...first, cost: 0 })).toMatchObject({ remaining: roomOf(one) - 1 })
    },
  )

  test('a call without charges has no decisions', async () => {
    expect(await use.charge([])).toEqual([])
  })
}

function defineWorkedExample(use: Use): void {
  test('the token bucket of the specification: capacity 10, refill 1 per second', async () => {
    use.begin()
    const bucket = algorithms.find(({ name }) => name === 'token_bucket')
    if (bucket === undefined) throw new Error('there is no token bucket')
    const charge = newCharge(bucket, { requests: 1, windowUs: 1_000_000, burst: 10 })
    const hits = async (count: number) => {
      const decisions: Decision[] = []
      for (let i = 0; i < count; i++) decisions.push(await use.one(charge))
      return decisions.filter(({ admitted }) => admitted).length
    }
    expect(await hits(12)).toBe(10)
    use.wait(10_000_000)
    expect(await hits(12)).toBe(10)
    for (let second = 0; second < 10; second++) {
      let admitted = 0
      for (let tenth = 0; tenth < 10; tenth++) {
        use.wait(100_000)
        admitted += await hits(1)
      }
      expect(admitted).toBe(1)
    }
  })
}
