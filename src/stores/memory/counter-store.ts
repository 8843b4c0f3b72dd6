// Counters in memory: for standalone, and for a limiter without Redis. Bounded; evicts the least
// recently used counter. An expired counter is ignored and overwritten by the next one of its key,
// not deleted: LRUCache's `delete` of the last entry clears arrays of COUNTERS_MAX.
import { LRUCache } from 'lru-cache'
import type { CounterState, Decision } from '../../limits/algorithm.ts'
import type { CounterHits, CounterStore } from '../../limits/counter-store.ts'
import { decideTogether } from '../../limits/decide-together.ts'

/** Counters in memory. */
export interface MemoryCounterStore extends CounterStore {
  /** `consume` without the promise; never throws. */
  consumeNow(counts: readonly CounterHits[]): readonly Decision[]
  /** Sets a counter so that `remaining` hits remain, or the whole limit if it is less. */
  setRemaining(count: CounterHits, remaining: number): void
  /** Whether a counter has been written and not evicted; it may have expired. */
  hasCounter(key: string): boolean
  /** The number of counters, including expired ones. */
  counterCount(): number
}

/** Default maximum number of counters. */
const COUNTERS_MAX = 100_000
const EXPIRED = -Infinity

interface Counter {
  state: CounterState
  expiresAtUs: number
}

type Counters = LRUCache<string, Counter>

/** Creates an empty store; `nowUs` returns microseconds since the Unix epoch. */
export function createMemoryCounterStore({
  nowUs,
  countersMax = COUNTERS_MAX,
}: {
  readonly nowUs: () => number
  readonly countersMax?: number
}): MemoryCounterStore {
  const counters: Counters = new LRUCache({ max: countersMax })

  const consumeOne = (count: CounterHits) => {
    const atUs = nowUs()
    const stored = counters.get(count.key)
    const state = liveState(stored, atUs)
    let decision = decide(count, state, atUs)
    if (!decision.admitted && count.veto !== 'never') {
      decision = withoutConsumption(decision, { count, state, atUs })
    }
    const { next, expiresInUs } = decision
    if (next !== undefined)
      writeCounter(counters, count.key, { stored, state: next, atUs, expiresInUs })
    return [decision]
  }
  const consumeSeveral = (counts: readonly CounterHits[]) => {
    const atUs = nowUs()
    const stateOf = (key: string) => liveState(counters.get(key), atUs)
    const { decisions, changes } = decideTogether(counts, atUs, stateOf)
    for (const [key, { state, expiresInUs }] of changes) {
      writeCounter(counters, key, { stored: counters.get(key), state, atUs, expiresInUs })
    }
    return decisions
  }
  const consumeNow = (counts: readonly CounterHits[]): readonly Decision[] => {
    const [count] = counts
    return count !== undefined && counts.length === 1 ? consumeOne(count) : consumeSeveral(counts)
  }
  return {
    consumeNow,
    consume: (counts) => Promise.resolve(consumeNow(counts)),
    reset(counts) {
      for (const { key } of counts) {
        const stored = counters.get(key)
        if (stored !== undefined) stored.expiresAtUs = EXPIRED
      }
      return Promise.resolve()
    },
    setRemaining(count, remaining) {
      const atUs = nowUs()
      const stored = counters.get(count.key)
      if (stored !== undefined) stored.expiresAtUs = EXPIRED
      const cost = decide({ ...count, cost: 0 }, undefined, atUs).remaining - remaining
      if (cost <= 0) return
      const { next, expiresInUs } = decide({ ...count, cost }, undefined, atUs)
      if (next !== undefined)
        writeCounter(counters, count.key, { stored, state: next, atUs, expiresInUs })
    },
    hasCounter: (key) => counters.has(key),
    counterCount: () => counters.size,
  }
}

/** The state of an unexpired counter; an expired one stays so if the clock is set back. */
function liveState(stored: Counter | undefined, atUs: number): CounterState | undefined {
  if (stored === undefined || stored.expiresAtUs > atUs) return stored?.state
  stored.expiresAtUs = EXPIRED
  return undefined
}

/** Writes a counter in place of the stored one of its key. */
function writeCounter(
  counters: Counters,
  key: string,
  next: { stored: Counter | undefined; state: CounterState; atUs: number; expiresInUs: number },
): void {
  const { stored, state, atUs, expiresInUs } = next
  const expiresAtUs = expiresInUs > 0 ? atUs + expiresInUs : EXPIRED
  if (stored !== undefined) {
    stored.state = state
    stored.expiresAtUs = expiresAtUs
  } else if (expiresAtUs !== EXPIRED) {
    counters.set(key, { state, expiresAtUs })
  }
}

// The functions below decide one count as decideTogether decides many, without its lists.

function decide(
  { algorithm, limit, cost }: CounterHits,
  state: CounterState | undefined,
  atUs: number,
): Decision {
  return algorithm.decide({ state, cost, nowUs: atUs, limit })
}

/** The decision when its call is denied: nothing is consumed, except with `denyConsumes`. */
function withoutConsumption(
  decision: Decision,
  of: { count: CounterHits; state: CounterState | undefined; atUs: number },
): Decision {
  const { algorithm, limit, cost } = of.count
  if (cost <= 0 || limit.denyConsumes) return decision
  const { admitted, over, retryAfterUs } = decision
  const peek = { state: of.state, cost: 0, nowUs: of.atUs, limit }
  return { ...algorithm.decide(peek), admitted, over, retryAfterUs }
}
