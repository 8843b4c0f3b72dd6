// What a call that is denied by one Redis, or one hash slot, takes back from the others.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The charges of one group of a call, as they were made. */
export interface ChargedPart {
  /** Where each stands in the call. */
  readonly places: readonly number[]
  readonly charges: readonly CounterCharge[]
  readonly decisions: readonly Decision[]
}

/**
 * Hits are not refunded this close to the end of their window, or a tenth of it: the refund could
 * arrive in the next one and take hits off that. Until the window ends they count.
 */
const REFUND_US_MIN = 100_000

/** The refunds of what a part has taken of a denied call; corrects the call's `decisions`. */
export function refundsOf(part: ChargedPart, decisions: Decision[]): readonly CounterCharge[] {
  const { places, charges, decisions: decided } = part
  if (isDenied(charges, decided)) return [] // it has taken nothing
  return charges.flatMap((charge, at): CounterCharge[] => {
    const [decision, place] = [decided[at], places[at]]
    if (decision?.admitted !== true || place === undefined) return []
    if (charge.cost <= 0 || charge.limit.denyConsumes || endsSoon(charge, decision)) return []
    decisions[place] = { ...decision, remaining: decision.remaining + charge.cost }
    return [{ ...charge, cost: -charge.cost, veto: 'never' }]
  })
}

/** A window begins when a whole number of windows is left until the whole limit is free again. */
function endsSoon({ limit: { windowUs } }: CounterCharge, { resetUs }: Decision): boolean {
  return resetUs % windowUs < Math.min(REFUND_US_MIN, windowUs / 10)
}
