// How the contract of counters uses a store: charges of new counters, by a clock of the test's own.
import type { Algorithm, Decision, Limit } from '../../src/limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../../src/limits/counter-store.ts'

/** An open store whose clock the tests set. */
export interface OpenedCounterStore {
  readonly store: CounterStore
  readonly setNowUs: (nowUs: number) => void
  readonly close: () => Promise<void>
}

/** Requests of a limit that says nothing else. */
const REQUESTS = 10
/** Its window. */
export const WINDOW_US = 1_000_000_000
/** A window begins here. */
const START_US = 1_790_000_000_000_000

let keysMade = 0

/** A store, its clock, and charges to it. */
export function useOf(opened: () => OpenedCounterStore) {
  let nowUs = START_US
  const goTo = (toUs: number) => {
    nowUs = toUs
    opened().setNowUs(toUs)
  }
  return {
    begin() {
      goTo(START_US)
    },
    wait(us: number) {
      goTo(nowUs + us)
    },
    charge: (charges: readonly CounterCharge[]) => opened().store.charge(charges),
    async one(charge: CounterCharge): Promise<Decision> {
      const [decision] = await opened().store.charge([charge])
      if (decision === undefined) throw new Error('there is no decision')
      return decision
    },
  }
}

/** What `useOf` gives. */
export type Use = ReturnType<typeof useOf>

/** A charge of one hit to a counter of its own. */
export function newCharge(algorithm: Algorithm, limit: Partial<Limit> = {}): CounterCharge {
  const shape = { requests: REQUESTS, windowUs: WINDOW_US, denyConsumes: false, ...limit }
  return {
    key: `counter ${String(keysMade++)}`,
    algorithm,
    limit: { burst: shape.requests, ...shape },
    cost: 1,
    veto: 'alone',
    isPerSecond: false,
  }
}

/** Hits that come at once and are let through. */
export function roomOf(algorithm: Algorithm): number {
  return algorithm.name === 'leaky_bucket' ? 1 : REQUESTS
}

/** Uses a new counter up. */
export async function fill(use: Use, charge: CounterCharge): Promise<void> {
  for (let i = 0; i < roomOf(charge.algorithm); i++) await use.one(charge)
}
