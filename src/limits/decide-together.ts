// Decides the charges of one call together: hits that a denial of the call refunds are not kept.
// The script of stores/redis does the same in one atomic step.
import type { CounterState, Decision } from './algorithm.ts'
import type { CounterCharge } from './counter-store.ts'

/** A counter's new state. */
interface Kept {
  readonly state: CounterState
  /** Its lifetime. */
  readonly expiresInUs: number
}

/** Result of a call. */
export interface Together {
  /** In the order of the charges. */
  readonly decisions: readonly Decision[]
  /** The counters that change, by key. */
  readonly changes: ReadonlyMap<string, Kept>
}

/** Decides the charges of one call, in their order. `stateOf` returns the stored state. */
export function decideTogether(
  charges: readonly CounterCharge[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): Together {
  const whole = decideEach(charges, nowUs, stateOf)
  if (!isDenied(charges, whole.decisions)) return whole
  const kept = charges.map((charge) => (isKept(charge) ? charge : { ...charge, cost: 0 }))
  const changed = decideEach(kept, nowUs, stateOf)
  const decisions = changed.decisions.map((decision, at) => {
    const { admitted = false, over = 0, retryAfterUs = 0 } = whole.decisions[at] ?? {}
    return { ...decision, admitted, over, retryAfterUs }
  })
  return { decisions, changes: changed.changes }
}

function decideEach(
  charges: readonly CounterCharge[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): Together {
  const changes = new Map<string, Kept>()
  const decisions = charges.map(({ key, algorithm, limit, cost }) => {
    const state = changes.get(key)?.state ?? stateOf(key)
    const decision = algorithm.decide({ state, cost, nowUs, limit })
    const { next, expiresInUs } = decision
    if (next !== undefined) changes.set(key, { state: next, expiresInUs })
    return decision
  })
  return { decisions, changes }
}

/** Whether hits count although their call is denied; refunds always do. */
function isKept({ cost, limit }: CounterCharge): boolean {
  return cost < 0 || limit.denyConsumes
}

/** Whether the decisions of its charges deny a call. */
export function isDenied(
  charges: readonly CounterCharge[],
  decisions: readonly Decision[],
): boolean {
  const deniedOf = (veto: CounterCharge['veto']) =>
    decisions.filter(({ admitted }, at) => charges[at]?.veto === veto && !admitted).length
  if (deniedOf('alone') > 0) return true
  const together = charges.filter(({ veto }) => veto === 'together').length
  return together > 0 && deniedOf('together') === together
}
