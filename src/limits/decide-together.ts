// Decides the counts of one call together: a denied call counts only in limits with `denyConsumes`.
// The script of stores/redis does the same in one atomic step.
import type { CounterState, Decision } from './algorithm.ts'
import type { CounterHits } from './counter-store.ts'

/** A counter's new state. */
interface NewState {
  readonly state: CounterState
  /** Its lifetime. */
  readonly expiresInUs: number
}

/** The decisions for a call. */
export interface CallDecision {
  /** In the order of the counts. */
  readonly decisions: readonly Decision[]
  /** The changed counters by key. */
  readonly changes: ReadonlyMap<string, NewState>
}

/** Decides the counts of one call, in their order. `stateOf` returns the stored state. */
export function decideTogether(
  counts: readonly CounterHits[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): CallDecision {
  const requested = decideEach(counts, nowUs, stateOf)
  if (!isDenied(counts, requested.decisions)) return requested
  const reducedCounts = counts.map((count) =>
    countsWhenDenied(count) ? count : { ...count, cost: 0 },
  )
  const reduced = decideEach(reducedCounts, nowUs, stateOf)
  const decisions = reduced.decisions.map((decision, at) => {
    const { admitted = false, over = 0, retryAfterUs = 0 } = requested.decisions[at] ?? {}
    return { ...decision, admitted, over, retryAfterUs }
  })
  return { decisions, changes: reduced.changes }
}

function decideEach(
  counts: readonly CounterHits[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): CallDecision {
  const changes = new Map<string, NewState>()
  const decisions = counts.map(({ key, algorithm, limit, cost }) => {
    const state = changes.get(key)?.state ?? stateOf(key)
    const decision = algorithm.decide({ state, cost, nowUs, limit })
    const { next, expiresInUs } = decision
    if (next !== undefined) changes.set(key, { state: next, expiresInUs })
    return decision
  })
  return { decisions, changes }
}

/** Whether hits count although their call is denied; refunds always count. */
function countsWhenDenied({ cost, limit }: CounterHits): boolean {
  return cost < 0 || limit.denyConsumes
}

/** Whether the decisions of the counts deny their call. */
export function isDenied(
  counts: readonly CounterHits[],
  decisions: readonly Pick<Decision, 'admitted'>[],
): boolean {
  const deniedOf = (veto: CounterHits['veto']) =>
    decisions.filter(({ admitted }, at) => counts[at]?.veto === veto && !admitted).length
  if (deniedOf('alone') > 0) return true
  const together = counts.filter(({ veto }) => veto === 'together').length
  return together > 0 && deniedOf('together') === together
}
