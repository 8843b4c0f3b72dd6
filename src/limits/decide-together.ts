// Decides the updates of one call together: a denied call counts only in limits with
// `denyConsumes`. The script of stores/redis does the same in one atomic step.
import type { CounterState, Decision } from './algorithm.ts'
import type { CounterUpdate } from './counter-store.ts'

/** A counter's new state. */
interface NewState {
  readonly state: CounterState
  /** Its lifetime. */
  readonly expiresInUs: number
}

/** The decisions for a call. */
export interface CallDecision {
  /** In the order of the updates. */
  readonly decisions: readonly Decision[]
  /** The changed counters by key. */
  readonly changes: ReadonlyMap<string, NewState>
}

/** Decides the updates of one call, in their order. `stateOf` returns the stored state. */
export function decideTogether(
  updates: readonly CounterUpdate[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): CallDecision {
  const requested = decideEach(updates, nowUs, stateOf)
  if (!isDenied(updates, requested.decisions)) return requested
  const reducedUpdates = updates.map((update) =>
    countsWhenDenied(update) ? update : { ...update, hits: 0 },
  )
  const reduced = decideEach(reducedUpdates, nowUs, stateOf)
  const decisions = reduced.decisions.map((decision, at) => {
    const { admitted = false, over = 0, retryAfterUs = 0 } = requested.decisions[at] ?? {}
    return { ...decision, admitted, over, retryAfterUs }
  })
  return { decisions, changes: reduced.changes }
}

function decideEach(
  updates: readonly CounterUpdate[],
  nowUs: number,
  stateOf: (key: string) => CounterState | undefined,
): CallDecision {
  const changes = new Map<string, NewState>()
  const decisions = updates.map(({ key, algorithm, limit, hits }) => {
    const state = changes.get(key)?.state ?? stateOf(key)
    const decision = algorithm.decide({ state, hits, nowUs, limit })
    const { next, expiresInUs } = decision
    if (next !== undefined) changes.set(key, { state: next, expiresInUs })
    return decision
  })
  return { decisions, changes }
}

/** Whether hits count although their call is denied; refunds always count. */
function countsWhenDenied({ hits, limit }: CounterUpdate): boolean {
  return hits < 0 || limit.denyConsumes
}

/** Whether the decisions for the updates of a call deny it. */
export function isDenied(
  updates: readonly CounterUpdate[],
  decisions: readonly Pick<Decision, 'admitted'>[],
): boolean {
  const deniedOf = (veto: CounterUpdate['veto']) =>
    decisions.filter(({ admitted }, at) => updates[at]?.veto === veto && !admitted).length
  if (deniedOf('alone') > 0) return true
  const together = updates.filter(({ veto }) => veto === 'together').length
  return together > 0 && deniedOf('together') === together
}
