// Which changes of a link meet which faults: the scenarios that must hold, and mutants that must
// not. change.test.ts runs the small ones, test/soak/models.ts all.
import { type ChangeSetup, undone } from './change-model.ts'

/** A scenario by its name. */
export interface NamedChange {
  readonly name: string
  readonly setup: ChangeSetup
  readonly unknowns: number
  readonly crashes: number
}

/** A mutant, and the promise that breaks. */
export interface ChangeMutant extends NamedChange {
  readonly breaks: string
}

const oneLost = { unknowns: 1, crashes: 0 }

/** Scenarios with the faults that the inner loop has time for. */
export const changeScenarios: readonly NamedChange[] = [
  { name: 'disable, enable', setup: { changes: ['disable', 'enable'] }, unknowns: 2, crashes: 0 },
  {
    name: 'enable, disable, of a disabled link',
    setup: { changes: ['enable', 'disable'], isDisabled: true },
    unknowns: 2,
    crashes: 0,
  },
  { name: 'disable twice', setup: { changes: ['disable', 'disable'] }, unknowns: 2, crashes: 0 },
  {
    name: 'disable, enable, aborted',
    setup: { changes: ['disable', 'enable'], givesUp: true },
    unknowns: 2,
    crashes: 0,
  },
  {
    name: 'erase, enable, aborted',
    setup: { changes: ['erase', 'enable'], givesUp: true },
    unknowns: 2,
    crashes: 0,
  },
  { name: 'erase, enable', setup: { changes: ['erase', 'enable'] }, unknowns: 2, crashes: 0 },
  {
    name: 'disable, enable, disable',
    setup: { changes: ['disable', 'enable', 'disable'] },
    ...oneLost,
  },
  {
    name: 'disable, enable, erase',
    setup: { changes: ['disable', 'enable', 'erase'] },
    ...oneLost,
  },
]

/** Larger scenarios, for the fault tests. */
export const largeChangeScenarios: readonly NamedChange[] = [
  ...changeScenarios.map((one) => ({ ...one, unknowns: one.unknowns + 1, crashes: 1 })),
]

/** Mutants: each removes one clause of the protocol. */
export const changeMutants: readonly ChangeMutant[] = [
  {
    name: 'an erasure does not compare the previous change id',
    setup: { changes: ['erase', 'enable'], givesUp: true, bent: { comparesNoChange: true } },
    ...oneLost,
    breaks: undone,
  },
  {
    name: 'a change does not compare the previous change id',
    setup: { changes: ['disable', 'enable'], bent: { comparesNoChange: true } },
    ...oneLost,
    breaks: undone,
  },
  {
    name: 'a change to the current state is not written',
    setup: { changes: ['disable', 'enable'], givesUp: true, bent: { writesNoSame: true } },
    ...oneLost,
    breaks: undone,
  },
  {
    name: 'an operator uses one id for all its changes',
    setup: { changes: ['disable', 'enable', 'disable'], bent: { namesItself: true } },
    ...oneLost,
    breaks: undone,
  },
]
