// What is said of a pool, case by case.
import { expect, test } from '@jest/globals'
import { planRefillJob } from './plan-refill-job.ts'
import { poolConditions } from './pool-conditions.ts'
import type { PoolSight, RefillOutcome, SeenJob, StoredSight } from './refill-sight.ts'

const NOW = 1_000_000_000
const there = (level: number, more: object = {}): StoredSight => ({
  ...{ kind: 'there', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const base: PoolSight = {
  spec: { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false },
  stored: there(3000),
  self: 'n/p',
  mayReplace: null,
  rival: null,
  inputs: 'a',
  jobs: [],
  history: { begun: 0, last: null, failures: 0 },
}
const job: SeenJob = {
  name: 'j',
  refill: 1,
  inputs: 'a',
  state: 'running',
  isDeleting: false,
  startedMs: NOW - 40_000,
  finishedMs: null,
  trouble: { reason: 'SecretMissing', message: 'secret "x" not found' },
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

function said(more: Partial<PoolSight>): string {
  const seen = { ...base, ...more }
  const conditions = poolConditions(seen, planRefillJob(seen, NOW), NOW)
  return conditions.map(({ status, reason }) => `${status} ${reason}`).join(', ')
}

const cases: [Partial<PoolSight>, string][] = [
  [{}, 'True LevelSufficient, False NotNeeded, False AsExpected'],
  [{ stored: there(1000) }, 'False BelowLowWater, True JobRunning, False AsExpected'],
  [{ stored: there(0) }, 'False Empty, True JobRunning, False AsExpected'],
  [{ stored: { kind: 'absent' } }, 'False NeverFilled, True JobRunning, False AsExpected'],
  [
    { stored: { kind: 'unknown', why: 'away' } },
    'Unknown StoreUnavailable, False StoreUnavailable, True StoreUnavailable',
  ],
  [
    { stored: there(1000, { owner: 'n/q' }) },
    'False OtherOwner, False OtherOwner, True OtherOwner',
  ],
  [{ rival: 'n/q' }, 'False OtherOwner, False OtherOwner, True OtherOwner'],
  [
    { inputs: { reason: 'TemplateMissing', message: 'no file' } },
    'True LevelSufficient, False TemplateMissing, True TemplateMissing',
  ],
  [
    { spec: { ...base.spec, isPaused: true }, stored: there(1000) },
    'False BelowLowWater, False Paused, False AsExpected',
  ],
  [
    { stored: there(1000), jobs: [job] },
    'False BelowLowWater, True JobRunning, True SecretMissing',
  ],
  [
    { stored: there(1000), jobs: [{ ...job, startedMs: NOW }] },
    'False BelowLowWater, True JobRunning, False AsExpected',
  ],
  [
    { stored: there(1000), history: { begun: 1, failures: 1, last: failedLast } },
    'False BelowLowWater, False BackingOff, True SecretChanged',
  ],
  // At the mark to the code, and at the bound to the millisecond.
  [{ stored: there(2000) }, 'True LevelSufficient, False NotNeeded, False AsExpected'],
  [{ stored: there(1999) }, 'False BelowLowWater, True JobRunning, False AsExpected'],
  [
    { jobs: [{ ...job, startedMs: NOW - 30_000 }] },
    'True LevelSufficient, True JobRunning, True SecretMissing',
  ],
  [
    { jobs: [{ ...job, startedMs: NOW - 29_999 }] },
    'True LevelSufficient, True JobRunning, False AsExpected',
  ],
  // The trouble of the Job at work is reported before that of the last refill.
  [
    { jobs: [{ ...job, refill: 2 }], history: { begun: 2, failures: 1, last: failedLast } },
    'True LevelSufficient, True JobRunning, True SecretMissing',
  ],
  [
    { history: { begun: 1, failures: 1, last: { ...failedLast, outcome: 'Cancelled' } } },
    'True LevelSufficient, False NotNeeded, False AsExpected',
  ],
  [
    { history: { begun: 1, failures: 0, last: failedLast } },
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
    { stored: there(1000), jobs: [{ ...job, isDeleting: true }] },
    'False BelowLowWater, False Waiting, False AsExpected',
  ],
]

test.each(cases)('%j: %s', (more, conditions) => {
  expect(said(more)).toBe(conditions)
})

test('no message follows the level, so that claims write no status', () => {
  const messages = (level: number) => {
    const seen = { ...base, stored: there(level) }
    return poolConditions(seen, planRefillJob(seen, NOW), NOW)
  }
  expect(messages(3000)).toEqual(messages(4000))
})
