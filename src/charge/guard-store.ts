// Keeps a counter store that is slow, hung or gone from holding up the calls of clients.
import type { Decision } from '../limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../limits/counter-store.ts'
import { createGuard, type Guard, type GuardOptions } from '../process/guard.ts'

/** A store behind its guard. */
export interface GuardedStore extends Omit<Guard, 'ask'> {
  /** The decisions, or `undefined` at the deadline at the latest: the store did not answer. */
  charge(charges: readonly CounterCharge[]): Promise<readonly Decision[] | undefined>
}

/** Guards a store. */
export function guardStore({
  store,
  ...options
}: Omit<GuardOptions, 'probe'> & {
  readonly store: CounterStore & { probe(): Promise<void> }
}): GuardedStore {
  const { ask, isAway, stop } = createGuard({ ...options, probe: () => store.probe() })
  return { charge: (charges) => ask(() => store.charge(charges)), isAway, stop }
}
