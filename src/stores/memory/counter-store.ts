// Counters in memory: for standalone, and for a limiter without Redis. Holds a bounded number and
// evicts the least recently counted one. A counter that has expired is not used, and overwritten
// by the next one of its key: the cache's `delete` of a last entry clears arrays of COUNTERS_MAX.
import { LRUCache } from 'lru-cache'
import type { CounterState, Decision } from '../../limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../../limits/counter-store.ts'
import { decideTogether } from '../../limits/decide-together.ts'

/** Counters in memory. */
export interface MemoryCounterStore extends CounterStore {
  /** `charge` without the promise; never throws. */
  chargeNow(charges: readonly CounterCharge[]): readonly Decision[]
  /** Overwrites a counter so that `remaining` hits remain of its limit, or all if that is fewer. */
  keepRemaining(charge: CounterCharge, remaining: number): void
  /** How many counters are held, expired ones included. */
  countersHeld(): number
}

/** So many counters are held where nothing else is said. */
const COUNTERS_MAX = 100_000
const EXPIRED = -Infinity

interface Counter {
  state: CounterState
  expiresAtUs: number
}

type Counters = LRUCache<string, Counter>

/** Makes an empty store. `nowUs` gives microseconds since the Unix epoch. */
export function createMemoryCounterStore({
  nowUs,
  countersMax = COUNTERS_MAX,
}: {
  readonly nowUs: () => number
  readonly countersMax?: number
}): MemoryCounterStore {
  const counters: Counters = new LRUCache({ max: countersMax })

  const chargeOne = (charge: CounterCharge) => {
    const atUs = nowUs()
    const held = counters.get(charge.key)
    const state = liveState(held, atUs)
    let decision = decide(charge, state, atUs)
    if (!decision.admitted && charge.veto !== 'never') {
      decision = takenBack(decision, { charge, state, atUs })
    }
    const { next, expiresInUs } = decision
    if (next !== undefined) keep(counters, charge.key, { held, state: next, atUs, expiresInUs })
    return [decision]
  }
  const chargeSeveral = (charges: readonly CounterCharge[]) => {
    const atUs = nowUs()
    const stateOf = (key: string) => liveState(counters.get(key), atUs)
    const { decisions, changes } = decideTogether(charges, atUs, stateOf)
    for (const [key, { state, expiresInUs }] of changes) {
      keep(counters, key, { held: counters.get(key), state, atUs, expiresInUs })
    }
    return decisions
  }
  const chargeNow = (charges: readonly CounterCharge[]): readonly Decision[] => {
    const [charge] = charges
    return charge !== undefined && charges.length === 1 ? chargeOne(charge) : chargeSeveral(charges)
  }
  return {
    chargeNow,
    charge: (charges) => Promise.resolve(chargeNow(charges)),
    keepRemaining(charge, remaining) {
      const atUs = nowUs()
      const held = counters.get(charge.key)
      if (held !== undefined) held.expiresAtUs = EXPIRED
      const cost = decide({ ...charge, cost: 0 }, undefined, atUs).remaining - remaining
      if (cost <= 0) return
      const { next, expiresInUs } = decide({ ...charge, cost }, undefined, atUs)
      if (next !== undefined) keep(counters, charge.key, { held, state: next, atUs, expiresInUs })
    },
    countersHeld: () => counters.size,
  }
}

/** The state of a counter that has not expired; one that has stays so if the clock is set back. */
function liveState(held: Counter | undefined, atUs: number): CounterState | undefined {
  if (held === undefined || held.expiresAtUs > atUs) return held?.state
  held.expiresAtUs = EXPIRED
  return undefined
}

/** Writes a counter, over the one that is held for its key. */
function keep(
  counters: Counters,
  key: string,
  next: { held: Counter | undefined; state: CounterState; atUs: number; expiresInUs: number },
): void {
  const { held, state, atUs, expiresInUs } = next
  const expiresAtUs = expiresInUs > 0 ? atUs + expiresInUs : EXPIRED
  if (held !== undefined) {
    held.state = state
    held.expiresAtUs = expiresAtUs
  } else if (expiresAtUs !== EXPIRED) {
    counters.set(key, { state, expiresAtUs })
  }
}

// What follows does for one charge what decideTogether does for any number, without its lists.

function decide(
  { algorithm, limit, cost }: CounterCharge,
  state: CounterState | undefined,
  atUs: number,
): Decision {
  return algorithm.decide({ state, cost, nowUs: atUs, limit })
}

/** The decision where its call is denied. */
function takenBack(
  decision: Decision,
  of: { charge: CounterCharge; state: CounterState | undefined; atUs: number },
): Decision {
  const { algorithm, limit, cost } = of.charge
  if (cost <= 0 || limit.denyConsumes) return decision
  const { admitted, over, retryAfterUs } = decision
  const look = { state: of.state, cost: 0, nowUs: of.atUs, limit }
  return { ...algorithm.decide(look), admitted, over, retryAfterUs }
}
