// Counters in memory: for standalone, and for a limiter without Redis. Bounded; evicts the least
// recently used counter. An expired counter is ignored and overwritten by the next one of its key,
// not deleted: LRUCache's `delete` of the last entry clears arrays of COUNTERS_MAX.
import { LRUCache } from 'lru-cache'
import type { CounterState, Decision } from '../../limits/algorithm.ts'
import type { CounterUpdate, CounterStore } from '../../limits/counter-store.ts'
import { decideTogether } from '../../limits/decide-together.ts'

/** Counters in memory. */
export interface MemoryCounterStore extends CounterStore {
  /** `consume` without the promise; never throws. */
  consumeNow(updates: readonly CounterUpdate[]): readonly Decision[]
  /** Sets a counter so that `remaining` hits remain, but at most the whole limit. */
  setRemaining(update: CounterUpdate, remaining: number): void
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
  let used: Counters | undefined
  /** Allocated by the first count, because the full size takes megabytes. */
  const counters = () => (used ??= new LRUCache({ max: countersMax }))

  const consumeOne = (update: CounterUpdate) => {
    const atUs = nowUs()
    const stored = counters().get(update.key)
    const state = liveState(stored, atUs)
    let decision = decide(update, state, atUs)
    if (!decision.admitted && update.veto !== 'never') {
      decision = withoutConsumption(decision, { update, state, atUs })
    }
    const { next, expiresInUs } = decision
    if (next !== undefined)
      writeCounter(counters(), update.key, { stored, state: next, atUs, expiresInUs })
    return [decision]
  }
  const consumeSeveral = (updates: readonly CounterUpdate[]) => {
    const atUs = nowUs()
    const stateOf = (key: string) => liveState(counters().get(key), atUs)
    const { decisions, changes } = decideTogether(updates, atUs, stateOf)
    for (const [key, { state, expiresInUs }] of changes) {
      writeCounter(counters(), key, { stored: counters().get(key), state, atUs, expiresInUs })
    }
    return decisions
  }
  const consumeNow = (updates: readonly CounterUpdate[]): readonly Decision[] => {
    const [update] = updates
    return update !== undefined && updates.length === 1
      ? consumeOne(update)
      : consumeSeveral(updates)
  }
  return {
    consumeNow,
    consume: (updates) => Promise.resolve(consumeNow(updates)),
    reset(updates) {
      for (const { key } of updates) {
        const stored = counters().get(key)
        if (stored !== undefined) stored.expiresAtUs = EXPIRED
      }
      return Promise.resolve()
    },
    setRemaining(update, remaining) {
      const atUs = nowUs()
      const stored = counters().get(update.key)
      if (stored !== undefined) stored.expiresAtUs = EXPIRED
      const hits = decide({ ...update, hits: 0 }, undefined, atUs).remaining - remaining
      if (hits <= 0) return
      const { next, expiresInUs } = decide({ ...update, hits }, undefined, atUs)
      if (next !== undefined)
        writeCounter(counters(), update.key, { stored, state: next, atUs, expiresInUs })
    },
    hasCounter: (key) => used?.has(key) ?? false,
    counterCount: () => used?.size ?? 0,
  }
}

/** The state of an unexpired counter. An expired one stays expired if the clock is set back. */
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

// The functions below decide one update as decideTogether decides several, without its lists.

function decide(
  { algorithm, limit, hits }: CounterUpdate,
  state: CounterState | undefined,
  atUs: number,
): Decision {
  return algorithm.decide({ state, hits, nowUs: atUs, limit })
}

/** The decision when its call is denied: nothing is consumed, except with `denyConsumes`. */
function withoutConsumption(
  decision: Decision,
  of: { update: CounterUpdate; state: CounterState | undefined; atUs: number },
): Decision {
  const { algorithm, limit, hits } = of.update
  if (hits <= 0 || limit.denyConsumes) return decision
  const { admitted, over, retryAfterUs } = decision
  const peek = { state: of.state, hits: 0, nowUs: of.atUs, limit }
  return { ...algorithm.decide(peek), admitted, over, retryAfterUs }
}
