// Bounds the time that a call waits for a counter store that is slow, hangs or is unavailable.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterUpdate, CounterStore } from '../../limits/counter-store.ts'
import {
  createCircuitBreaker,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  type TimedOut,
} from '../../resilience/circuit-breaker.ts'

/**
 * The call has no decisions by its deadline: it failed or timed out, the store is slow (the call
 * then does not wait), or the circuit is open. `delayedResult` is undefined only if the circuit is
 * open.
 */
export type Undecided = TimedOut<readonly Decision[]>

/** A store with a circuit breaker. */
export interface GuardedStore extends Omit<CircuitBreaker, 'run' | 'runWithDelayedResult'> {
  /** Resolves to the decisions, or to `Undecided` by the deadline. Never rejects. */
  decide(updates: readonly CounterUpdate[]): Promise<readonly Decision[] | Undecided>
}

/** Whether the result contains no decisions. */
export function isUndecided(decisions: readonly Decision[] | Undecided): decisions is Undecided {
  return 'delayedResult' in decisions
}

/** Wraps a store in a circuit breaker. */
export function guardStore({
  store,
  ...options
}: Omit<CircuitBreakerOptions, 'probe'> & {
  readonly store: Pick<CounterStore, 'consume'> & { probe(): Promise<void> }
}): GuardedStore {
  const { runWithDelayedResult, isOpen, isUnresponsive, stop } = createCircuitBreaker({
    ...options,
    probe: () => store.probe(),
  })
  return {
    decide: (updates) => runWithDelayedResult(() => store.consume(updates)),
    isOpen,
    isUnresponsive,
    stop,
  }
}
