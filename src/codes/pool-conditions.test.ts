// The conditions of a pool, case by case.
import { expect, test } from '@jest/globals'
import { planRefillJob } from './plan-refill-job.ts'
import { poolConditions } from './pool-conditions.ts'
import type { ObservedPool, RefillOutcome, ObservedJob, ObservedStore } from './observed-state.ts'

const NOW = 1_000_000_000
const present = (level: number, more: object = {}): ObservedStore => ({
  ...{ kind: 'present', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const base: ObservedPool = {
  spec: { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false },
  stored: present(3000),
  self: 'n/p',
  mayReplace: null,
  conflictingOwner: null,
  inputs: 'a',
  jobs: [],
  history: { started: 0, last: null, failures: 0 },
}
const job: ObservedJob = {
  name: 'j',
  refill: 1,
  inputs: 'a',
  state: 'running',
  isDeleting: false,
  startedMs: NOW - 40_000,
  finishedMs: null,
  problem: { reason: 'SecretMissing', message: 'secret "x" not found' },
}
const failedLast: RefillOutcome = {
  refill: 1,
  job: 'j',
  inputs: 'a',
  outcome: 'Failed',
  startedMs: 0,
  finishedMs: NOW,
  reason: 'SecretChanged',
  message: 'another secret',
}

function conditionsOf(more: Partial<ObservedPool>) {
  const observed = { ...base, ...more }
  return poolConditions(observed, planRefillJob(observed, NOW), NOW)
}

const cases: [Partial<ObservedPool>, string][] = [
  [{}, 'True LevelSufficient, False NotNeeded, False AsExpected'],
  [{ stored: present(1000) }, 'False BelowLowWater, True JobRunning, False AsExpected'],
  [{ stored: present(0) }, 'False Empty, True JobRunning, False AsExpected'],
  [{ stored: { kind: 'absent' } }, 'False NeverFilled, True JobRunning, False AsExpected'],
  [
    { stored: { kind: 'unknown', reason: 'timeout' } },
    'Unknown StoreUnavailable, False StoreUnavailable, True StoreUnavailable',
  ],
  [
    { stored: present(1000, { owner: 'n/q' }) },
    'False OtherOwner, False OtherOwner, True OtherOwner',
  ],
  [{ conflictingOwner: 'n/q' }, 'False OtherOwner, False OtherOwner, True OtherOwner'],
  [
    { inputs: { reason: 'TemplateMissing', message: 'no file' } },
    'True LevelSufficient, False TemplateMissing, True TemplateMissing',
  ],
  [
    { spec: { ...base.spec, isPaused: true }, stored: present(1000) },
    'False BelowLowWater, False Paused, False AsExpected',
  ],
  [
    { stored: present(1000), jobs: [job] },
    'False BelowLowWater, True JobRunning, True SecretMissing',
  ],
  [
    { stored: present(1000), jobs: [{ ...job, startedMs: NOW }] },
    'False BelowLowWater, True JobRunning, False AsExpected',
  ],
  [
    { stored: present(1000), history: { started: 1, failures: 1, last: failedLast } },
    'False BelowLowWater, False BackingOff, True SecretChanged',
  ],
  // Exact at the mark (codes) and at the bound (milliseconds).
  [{ stored: present(2000) }, 'True LevelSufficient, False NotNeeded, False AsExpected'],
  [{ stored: present(1999) }, 'False BelowLowWater, True JobRunning, False AsExpected'],
  [
    { jobs: [{ ...job, startedMs: NOW - 30_000 }] },
    'True LevelSufficient, True JobRunning, True SecretMissing',
  ],
  [
    { jobs: [{ ...job, startedMs: NOW - 29_999 }] },
    'True LevelSufficient, True JobRunning, False AsExpected',
  ],
  // The problem of the running Job is reported before that of the last refill.
  [
    { jobs: [{ ...job, refill: 2 }], history: { started: 2, failures: 1, last: failedLast } },
    'True LevelSufficient, True JobRunning, True SecretMissing',
  ],
  [
    { history: { started: 1, failures: 1, last: { ...failedLast, outcome: 'Cancelled' } } },
    'True LevelSufficient, False NotNeeded, False AsExpected',
  ],
  [
    { history: { started: 1, failures: 0, last: failedLast } },
    'True LevelSufficient, False NotNeeded, False AsExpected',
  ],
  [
    {
      spec: { ...base.spec, isPaused: true },
      inputs: { reason: 'TemplateMissing', message: 'no file' },
    },
    'True LevelSufficient, False Paused, True TemplateMissing',
  ],
  [
    { stored: present(1000), jobs: [{ ...job, isDeleting: true }] },
    'False BelowLowWater, False Waiting, False AsExpected',
  ],
]

test.each(cases)('%j: %s', (more, conditions) => {
  const own = conditionsOf(more).slice(0, 3)
  expect(own.map(({ status, reason }) => `${status} ${reason}`).join(', ')).toBe(conditions)
})

const noTemplate = { inputs: { reason: 'TemplateMissing', message: 'no file' } }
const progress: [Partial<ObservedPool>, string][] = [
  [{}, ''],
  [{ stored: present(1000) }, 'Reconciling True BelowLowWater'],
  [{ stored: { kind: 'absent' } }, 'Reconciling True NeverFilled'],
  [{ stored: present(1000), spec: { ...base.spec, isPaused: true } }, ''],
  [{ stored: { kind: 'unknown', reason: 'timeout' } }, 'Reconciling True StoreUnavailable'],
  [
    { stored: { kind: 'unknown', reason: 'timeout' }, conflictingOwner: 'n/q' },
    'Stalled True OtherOwner',
  ],
  [{ ...noTemplate }, 'Stalled True TemplateMissing'],
  [{ ...noTemplate, stored: present(1000) }, 'Stalled True TemplateMissing'],
  [{ stored: present(1000), jobs: [job] }, 'Stalled True SecretMissing'],
  [{ stored: present(1000), jobs: [{ ...job, startedMs: NOW }] }, 'Reconciling True BelowLowWater'],
  // The controller retries a failed refill: only if that does not help, an operator has to act.
  [afterFailures(2, 'RefillFailed'), 'Reconciling True BelowLowWater'],
  [afterFailures(3, 'RefillFailed'), 'Stalled True RefillFailed'],
  [afterFailures(2, 'JobDeleted'), 'Reconciling True BelowLowWater'],
  [afterFailures(3, 'JobDeleted'), 'Stalled True JobDeleted'],
  [afterFailures(1, 'SecretChanged'), 'Stalled True SecretChanged'],
  [{ ...afterFailures(2, 'RefillFailed'), stored: present(3000) }, ''],
]

function afterFailures(failures: number, reason: string): Partial<ObservedPool> {
  const history = { started: 1, failures, last: { ...failedLast, reason } }
  return { stored: present(1000), history }
}

test.each(progress)('%j: the conditions for kstatus are %j', (more, expected) => {
  const added = conditionsOf(more).slice(3)
  expect(added.map(({ type, status, reason }) => `${type} ${status} ${reason}`).join()).toBe(
    expected,
  )
})

test('no message depends on the level, so claims cause no status writes', () => {
  const messages = (level: number) => {
    const observed = { ...base, stored: present(level) }
    return poolConditions(observed, planRefillJob(observed, NOW), NOW)
  }
  expect(messages(3000)).toEqual(messages(4000))
})
