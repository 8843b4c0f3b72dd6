// Counters in memory: for standalone, and for a limiter that is cut off from Redis. Holds so many
// at most and forgets first the one that was charged longest ago; what has expired is not used.
import { LRUCache } from 'lru-cache'
import type { CounterState, Decision } from '../../limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../../limits/counter-store.ts'
import { decideTogether } from '../../limits/decide-together.ts'

/** Counters in memory. */
export interface MemoryCounterStore extends CounterStore {
  /** `charge` without the promise; never throws. */
  chargeNow(charges: readonly CounterCharge[]): readonly Decision[]
  /** How many counters are held, with those that have expired and were not asked for since. */
  countersHeld(): number
}

/** So many counters are held where nothing else is said. */
const COUNTERS_MAX = 100_000

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
    const counter = liveCounter(counters, charge.key, atUs)
    let decision = decide(charge, counter, atUs)
    if (!decision.admitted && charge.veto !== 'never') {
      decision = takenBack(decision, { charge, counter, atUs })
    }
    keepNext(counters, charge.key, { counter, decision, atUs })
    return [decision]
  }
  const chargeSeveral = (charges: readonly CounterCharge[]) => {
    const atUs = nowUs()
    const stateOf = (key: string) => liveCounter(counters, key, atUs)?.state
    const { decisions, changes } = decideTogether(charges, atUs, stateOf)
    for (const [key, { state, expiresInUs }] of changes) {
      if (expiresInUs > 0) counters.set(key, { state, expiresAtUs: atUs + expiresInUs })
      else counters.delete(key)
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
    countersHeld: () => counters.size,
  }
}

/** A counter that matters still; one that does not is forgotten. */
function liveCounter(counters: Counters, key: string, atUs: number): Counter | undefined {
  const counter = counters.get(key)
  if (counter === undefined || counter.expiresAtUs > atUs) return counter
  counters.delete(key)
  return undefined
}

// What follows does for one charge what decideTogether does for any number, without its lists.

function keepNext(
  counters: Counters,
  key: string,
  of: { counter: Counter | undefined; decision: Decision; atUs: number },
): void {
  const { next: state, expiresInUs } = of.decision
  if (state === undefined) return
  const expiresAtUs = of.atUs + expiresInUs
  if (expiresInUs <= 0) counters.delete(key)
  else if (of.counter === undefined) counters.set(key, { state, expiresAtUs })
  else {
    of.counter.state = state
    of.counter.expiresAtUs = expiresAtUs
  }
}

function decide(
  { algorithm, limit, cost }: CounterCharge,
  counter: Counter | undefined,
  atUs: number,
): Decision {
  return algorithm.decide({ state: counter?.state, cost, nowUs: atUs, limit })
}

/** The decision where its call is denied. */
function takenBack(
  decision: Decision,
  of: { charge: CounterCharge; counter: Counter | undefined; atUs: number },
): Decision {
  const { algorithm, limit, cost } = of.charge
  if (cost <= 0 || limit.denyConsumes) return decision
  const { admitted, over, retryAfterUs } = decision
  const look = { state: of.counter?.state, cost: 0, nowUs: of.atUs, limit }
  return { ...algorithm.decide(look), admitted, over, retryAfterUs }
}
