// Refunds for a call that one Redis or hash slot denies after others have counted its hits.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The updates of a call in one hash slot or Redis, with their decisions. */
export interface CountedGroup {
  /** The index of each update in the call. */
  readonly places: readonly number[]
  readonly updates: readonly CounterUpdate[]
  readonly decisions: readonly Decision[]
}

/**
 * Hits are not refunded if their window ends within this time, or within a tenth of the window if
 * that is shorter: the refund could arrive in the next window and reduce the hits of that one.
 */
const REFUND_US_MIN = 100_000

/** The refunds of a group's hits in a denied call; adds them to `remaining` in `decisions`. */
export function refundsOf(group: CountedGroup, decisions: Decision[]): readonly CounterUpdate[] {
  const { places, updates, decisions: decided } = group
  if (isDenied(updates, decided)) return [] // the group has counted nothing that is refunded
  return updates.flatMap((update, at): CounterUpdate[] => {
    const [decision, place] = [decided[at], places[at]]
    if (decision?.admitted !== true || place === undefined) return []
    if (update.hits <= 0 || update.limit.denyConsumes || endsSoon(update, decision)) return []
    decisions[place] = { ...decision, remaining: decision.remaining + update.hits }
    return [{ ...update, hits: -update.hits, veto: 'never' }]
  })
}

function endsSoon({ algorithm, limit }: CounterUpdate, decision: Decision): boolean {
  return algorithm.refundableUs(decision, limit) < Math.min(REFUND_US_MIN, limit.windowUs / 10)
}
