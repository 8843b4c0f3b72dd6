// Keeps a counter store that is slow, hung or gone from holding up the calls of clients.
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../../limits/counter-store.ts'
import { createGuard, type Guard, type GuardOptions, type Late } from '../../resilience/guard.ts'

/** No decisions by the deadline; `later` has them if they come, and is absent if nobody asked. */
export type Unanswered = Late<readonly Decision[]>

/** A store behind its guard. */
export interface GuardedStore extends Omit<Guard, 'ask' | 'askForLate'> {
  /** The decisions, at the deadline at the latest. Never rejects. */
  charge(charges: readonly CounterCharge[]): Promise<readonly Decision[] | Unanswered>
}

/** Whether the store did not answer in time. */
export function isUnanswered(decisions: readonly Decision[] | Unanswered): decisions is Unanswered {
  return 'later' in decisions
}

/** Guards a store. */
export function guardStore({
  store,
  ...options
}: Omit<GuardOptions, 'probe'> & {
  readonly store: CounterStore & { probe(): Promise<void> }
}): GuardedStore {
  const { askForLate, isAway, isSilent, stop } = createGuard({
    ...options,
    probe: () => store.probe(),
  })
  return { charge: (charges) => askForLate(() => store.charge(charges)), isAway, isSilent, stop }
}
