// How the contract uses a counter store: updates of new counters, by a clock that the test sets.
import type { Algorithm, Decision, Limit } from '../../src/limits/algorithm.ts'
import { algorithms } from '../../src/limits/algorithms.ts'
import type { CounterUpdate, CounterStore } from '../../src/limits/counter-store.ts'

/** An open store whose clock the tests set. */
export interface OpenedCounterStore {
  readonly store: CounterStore
  readonly setNowUs: (nowUs: number) => void
  readonly close: () => Promise<void>
}

/** Default requests of a limit. */
export const REQUESTS = 10
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
    consume: (updates: readonly CounterUpdate[]) => opened().store.consume(updates),
    reset: (updates: readonly CounterUpdate[]) => opened().store.reset(updates),
    async one(update: CounterUpdate): Promise<Decision> {
      const [decision] = await opened().store.consume([update])
      if (decision === undefined) throw new Error('the store returned no decision')
      return decision
    },
  }
}

/** The result of `useOf`. */
export type Use = ReturnType<typeof useOf>

/** One hit for a new counter. */
export function newUpdate(algorithm: Algorithm, limit: Partial<Limit> = {}): CounterUpdate {
  const shape = { requests: REQUESTS, windowUs: WINDOW_US, denyConsumes: false, ...limit }
  return {
    key: `counter ${String(keysCreated++)}`,
    algorithm,
    limit: { burst: shape.requests, ...shape },
    hits: 1,
    veto: 'alone',
    isPerSecond: false,
  }
}

/** The algorithm of the list with this name. */
export function algorithmOf(name: string): Algorithm {
  const algorithm = algorithms.find((one) => one.name === name)
  if (algorithm === undefined) throw new Error(`no algorithm is called ${name}`)
  return algorithm
}

/** The hits that an unused counter admits immediately. */
export function capacityOf(algorithm: Algorithm, { limit } = newUpdate(algorithm)): number {
  return algorithm.decide({ state: undefined, hits: 0, nowUs: START_US, limit }).remaining
}

/** Exhausts a new counter. */
export async function fill(use: Use, update: CounterUpdate): Promise<void> {
  for (let i = 0; i < capacityOf(update.algorithm); i++) await use.one(update)
}
