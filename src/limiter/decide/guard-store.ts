// Bounds the time that a call waits for a counter store that is slow, hangs or is unavailable.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterHits, CounterStore } from '../../limits/counter-store.ts'
import {
  createCircuitBreaker,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  type TimedOut,
} from '../../resilience/circuit-breaker.ts'

/** No decisions within the deadline; `delayedResult` is undefined if the circuit is open. */
export type Undecided = TimedOut<readonly Decision[]>

/** A store with a circuit breaker. */
export interface GuardedStore extends Omit<CircuitBreaker, 'run' | 'runWithDelayedResult'> {
  /** Returns the decisions within the deadline. Never rejects. */
  decide(counts: readonly CounterHits[]): Promise<readonly Decision[] | Undecided>
}

/** Whether the store returned no decisions within the deadline. */
export function isUndecided(decisions: readonly Decision[] | Undecided): decisions is Undecided {
  return 'delayedResult' in decisions
}

/** Wraps a store in a circuit breaker. */
export function guardStore({
  store,
  ...options
}: Omit<CircuitBreakerOptions, 'probe'> & {
  readonly store: CounterStore & { probe(): Promise<void> }
}): GuardedStore {
  const { runWithDelayedResult, isOpen, isUnresponsive, stop } = createCircuitBreaker({
    ...options,
    probe: () => store.probe(),
  })
  return {
    decide: (counts) => runWithDelayedResult(() => store.consume(counts)),
    isOpen,
    isUnresponsive,
    stop,
  }
}
