// Interface of a counter store. test/contract/counter-store.ts tests every implementation.
import type { Algorithm, Decision, Limit } from './algorithm.ts'

/**
 * Effect of denied hits on their call: `alone` denies it; `together` denies it if all hits with
 * that veto are denied; `never` does not deny it.
 */
export type Veto = 'alone' | 'together' | 'never'

/** An update of one counter: the hits to count in it, by the algorithm of its rule. */
export interface CounterUpdate {
  /** Identifies the counter by rule, value and window; rules of a set never share one. */
  readonly key: string
  readonly algorithm: Algorithm
  readonly limit: Limit
  /** Hits, from -(2^32 - 1) to 2^32 - 1; 0 only reads the counter, a negative number refunds. */
  readonly hits: number
  readonly veto: Veto
  /** Whether its window is at most a second: the counter may then be in a separate Redis. */
  readonly isPerSecond: boolean
}

/** Counters by key. The state of a counter expires once it has no effect. */
export interface CounterStore {
  /**
   * Counts the hits of one call as `decideTogether` does, by the store's clock. Atomic, unless the
   * counters are in several hash slots or servers. Returns decisions in the order of `updates`.
   * After a StoreError the hits may have been counted.
   */
  consume(updates: readonly CounterUpdate[]): Promise<readonly Decision[]>
  /** Removes the counters; atomic as in `consume`. Throws StoreError. */
  reset(updates: readonly CounterUpdate[]): Promise<void>
}

/**
 * Prepares a subset of a call's updates for a separate decision. Quotas deny a call only if all of
 * them are exhausted, so if the subset lacks some of them, its quotas get the veto `never`.
 */
export function asSubset(
  subset: readonly CounterUpdate[],
  whole: readonly CounterUpdate[],
): readonly CounterUpdate[] {
  const quotas = (updates: readonly CounterUpdate[]) =>
    updates.filter(({ veto }) => veto === 'together').length
  if (quotas(subset) === quotas(whole)) return subset
  return subset.map((update) =>
    update.veto === 'together' ? { ...update, veto: 'never' } : update,
  )
}
