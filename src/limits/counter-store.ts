// Interface of a counter store. test/contract/counter-store.ts runs every algorithm on each.
import type { Algorithm, Decision, Limit } from './algorithm.ts'

/**
 * Effect of a denied charge on its call: `alone` denies it, `together` denies it if every
 * charge of that kind is denied, `never` admits it.
 */
export type Veto = 'alone' | 'together' | 'never'

/** Hits to count in one counter, by the algorithm of its rule. */
export interface CounterCharge {
  /** Names the counter: rule, value and window; no two rules share one. */
  readonly key: string
  readonly algorithm: Algorithm
  readonly limit: Limit
  /** Hits; 0 only reads, a negative number refunds hits. Its amount is below 2^32. */
  readonly cost: number
  readonly veto: Veto
  /** Whether the counter lives for at most a second, and may be in a separate Redis. */
  readonly isPerSecond: boolean
}

/** Counters by key. A counter's state expires once it has no effect. */
export interface CounterStore {
  /**
   * Counts the charges of one call by the store's clock, as `decideTogether` does, in one atomic
   * step. Returns decisions in the order of the charges. Throws StoreError: the result is unknown.
   */
  charge(charges: readonly CounterCharge[]): Promise<readonly Decision[]>
}

/**
 * Some charges of a call that are made apart from the others: what only all quotas together deny, a
 * part of them does not.
 */
export function partOf(
  part: readonly CounterCharge[],
  whole: readonly CounterCharge[],
): readonly CounterCharge[] {
  const quotas = (charges: readonly CounterCharge[]) =>
    charges.filter(({ veto }) => veto === 'together').length
  if (quotas(part) === quotas(whole)) return part
  return part.map((charge) => (charge.veto === 'together' ? { ...charge, veto: 'never' } : charge))
}
