// Scenarios of link changes and faults in which the invariant must hold, and mutants that must
// violate it. change.test.ts runs the small ones, test/soak/models.ts runs all.
import { type ChangeSetup, reverted } from './change-model.ts'

/** A scenario with its name. */
export interface NamedChange {
  readonly name: string
  readonly setup: ChangeSetup
  readonly timeouts: number
  readonly crashes: number
}

/** A mutant, and the invariant that it violates. */
export interface ChangeMutant extends NamedChange {
  readonly breaks: string
}

const oneTimeout = { timeouts: 1, crashes: 0 }

/** Scenarios that are small enough for the unit tests. */
export const changeScenarios: readonly NamedChange[] = [
  { name: 'disable, enable', setup: { changes: ['disable', 'enable'] }, timeouts: 2, crashes: 0 },
  {
    name: 'enable, disable, of a disabled link',
    setup: { changes: ['enable', 'disable'], isDisabled: true },
    timeouts: 2,
    crashes: 0,
  },
  { name: 'disable twice', setup: { changes: ['disable', 'disable'] }, timeouts: 2, crashes: 0 },
  {
    name: 'disable, enable, aborted',
    setup: { changes: ['disable', 'enable'], aborts: true },
    timeouts: 2,
    crashes: 0,
  },
  {
    name: 'erase, enable, aborted',
    setup: { changes: ['erase', 'enable'], aborts: true },
    timeouts: 2,
    crashes: 0,
  },
  { name: 'erase, enable', setup: { changes: ['erase', 'enable'] }, timeouts: 2, crashes: 0 },
  {
    name: 'disable, enable, disable',
    setup: { changes: ['disable', 'enable', 'disable'] },
    ...oneTimeout,
  },
  {
    name: 'disable, enable, erase',
    setup: { changes: ['disable', 'enable', 'erase'] },
    ...oneTimeout,
  },
]

/** Larger scenarios, for the fault tests. */
export const largeChangeScenarios: readonly NamedChange[] = [
  ...changeScenarios.map((one) => ({ ...one, timeouts: one.timeouts + 1, crashes: 1 })),
]

/** Mutants: each removes one clause of the protocol. */
export const changeMutants: readonly ChangeMutant[] = [
  {
    name: 'an erasure does not compare the previous change id',
    setup: { changes: ['erase', 'enable'], aborts: true, mutation: { ignoresChangeId: true } },
    ...oneTimeout,
    breaks: reverted,
  },
  {
    name: 'a change does not compare the previous change id',
    setup: { changes: ['disable', 'enable'], mutation: { ignoresChangeId: true } },
    ...oneTimeout,
    breaks: reverted,
  },
  {
    name: 'a change to the current state is not written',
    setup: { changes: ['disable', 'enable'], aborts: true, mutation: { skipsUnchanged: true } },
    ...oneTimeout,
    breaks: reverted,
  },
  {
    name: 'an operator uses one id for all its changes',
    setup: { changes: ['disable', 'enable', 'disable'], mutation: { reusesChangeId: true } },
    ...oneTimeout,
    breaks: reverted,
  },
]
