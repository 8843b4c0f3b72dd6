// How the contract uses a counter store: counts for new counters, by a clock that the test sets.
import type { Algorithm, Decision, Limit } from '../../src/limits/algorithm.ts'
import type { CounterHits, CounterStore } from '../../src/limits/counter-store.ts'

/** An open store whose clock the tests set. */
export interface OpenedCounterStore {
  readonly store: CounterStore
  readonly setNowUs: (nowUs: number) => void
  readonly close: () => Promise<void>
}

/** Default requests of a limit. */
const REQUESTS = 10
/** Default window. */
export const WINDOW_US = 1_000_000_000
/** The start of a window. */
const START_US = 1_790_000_000_000_000

let keysCreated = 0

/** A store and its clock. */
export function useOf(opened: () => OpenedCounterStore) {
  let nowUs = START_US
  const setClock = (toUs: number) => {
    nowUs = toUs
    opened().setNowUs(toUs)
  }
  return {
    resetClock() {
      setClock(START_US)
    },
    wait(us: number) {
      setClock(nowUs + us)
    },
    consume: (counts: readonly CounterHits[]) => opened().store.consume(counts),
    async one(count: CounterHits): Promise<Decision> {
      const [decision] = await opened().store.consume([count])
      if (decision === undefined) throw new Error('the store returned no decision')
      return decision
    },
  }
}

/** The result of `useOf`. */
export type Use = ReturnType<typeof useOf>

/** One hit for a new counter. */
export function newCount(algorithm: Algorithm, limit: Partial<Limit> = {}): CounterHits {
  const shape = { requests: REQUESTS, windowUs: WINDOW_US, denyConsumes: false, ...limit }
  return {
    key: `counter ${String(keysCreated++)}`,
    algorithm,
    limit: { burst: shape.requests, ...shape },
    cost: 1,
    veto: 'alone',
    isPerSecond: false,
  }
}

/** The hits that an unused counter admits immediately. */
export function capacityOf(algorithm: Algorithm): number {
  return algorithm.name === 'leaky_bucket' ? 1 : REQUESTS
}

/** Exhausts a new counter. */
export async function fill(use: Use, count: CounterHits): Promise<void> {
  for (let i = 0; i < capacityOf(count.algorithm); i++) await use.one(count)
}
