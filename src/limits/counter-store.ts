// Interface of a counter store. test/contract/counter-store.ts runs every algorithm on each.
import type { Algorithm, Decision, Limit } from './algorithm.ts'

/**
 * Effect of denied hits on their call: `alone` denies it, `together` denies it if all hits with
 * that veto are denied, `never` admits it.
 */
export type Veto = 'alone' | 'together' | 'never'

/** Hits to count in one counter, by the algorithm of its rule. */
export interface CounterHits {
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
   * Counts the hits of one call by the store's clock, as `decideTogether` does, in one atomic
   * step. Returns decisions in the order of `counts`. Throws StoreError: the result is unknown.
   */
  consume(counts: readonly CounterHits[]): Promise<readonly Decision[]>
}

/**
 * The counts of a call that are decided apart from the others. Only all quotas together deny a
 * call, so if some quotas are missing from `part`, the others in it deny nothing.
 */
export function partOf(
  part: readonly CounterHits[],
  whole: readonly CounterHits[],
): readonly CounterHits[] {
  const quotas = (counts: readonly CounterHits[]) =>
    counts.filter(({ veto }) => veto === 'together').length
  if (quotas(part) === quotas(whole)) return part
  return part.map((count) => (count.veto === 'together' ? { ...count, veto: 'never' } : count))
}
