// Refunds for a call that one Redis or hash slot denies after others have counted its hits.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterHits } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The counts of a call in one hash slot or Redis, with their decisions. */
export interface CountedGroup {
  /** The index of each in the call. */
  readonly places: readonly number[]
  readonly counts: readonly CounterHits[]
  readonly decisions: readonly Decision[]
}

/**
 * Hits are not refunded if their window ends within this time, or within a tenth of the window if
 * that is shorter: the refund could arrive in the next window and reduce the hits of that one.
 */
const REFUND_US_MIN = 100_000

/** The refunds of a group's hits in a denied call; adds them to `remaining` in `decisions`. */
export function refundsOf(group: CountedGroup, decisions: Decision[]): readonly CounterHits[] {
  const { places, counts, decisions: decided } = group
  if (isDenied(counts, decided)) return [] // the group has counted nothing
  return counts.flatMap((count, at): CounterHits[] => {
    const [decision, place] = [decided[at], places[at]]
    if (decision?.admitted !== true || place === undefined) return []
    if (count.cost <= 0 || count.limit.denyConsumes || endsSoon(count, decision)) return []
    decisions[place] = { ...decision, remaining: decision.remaining + count.cost }
    return [{ ...count, cost: -count.cost, veto: 'never' }]
  })
}

function endsSoon({ algorithm, limit }: CounterHits, decision: Decision): boolean {
  return algorithm.refundableUs(decision, limit) < Math.min(REFUND_US_MIN, limit.windowUs / 10)
}
