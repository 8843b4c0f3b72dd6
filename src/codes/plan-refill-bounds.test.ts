// The bounds of a refill plan: back-off and retention to the millisecond, levels, and outcomes that
// are recorded once although they are observed twice.
import { expect, test } from '@jest/globals'
import { planRefillJob, refillMarks } from './plan-refill-job.ts'
import type { ObservedPool, RefillHistory, ObservedJob, ObservedStore } from './observed-state.ts'

const NOW = 1_000_000_000
const MINUTE_MS = 60_000
const spec = { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false }
const history: RefillHistory = { started: 0, last: null, failures: 0 }
const present = (level: number, more: object = {}): ObservedStore => ({
  ...{ kind: 'present', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const job = (more: Partial<ObservedJob> = {}): ObservedJob => ({
  ...{ name: 'j1', refill: 1, inputs: 'a', state: 'running', isDeleting: false },
  ...{ startedMs: NOW - 1000, finishedMs: null, problem: null },
  ...more,
})
const finished = (outcome: 'Succeeded' | 'Failed' | 'Cancelled', failures = 0): RefillHistory => ({
  started: 1,
  failures,
  last: {
    ...{ refill: 1, job: 'j1', inputs: 'a', outcome, startedMs: NOW, finishedMs: NOW },
    ...{ reason: '', message: '' },
  },
})
const plan = (more: Partial<ObservedPool>, nowMs = NOW) => {
  const rest = {
    self: 'n/p',
    mayReplace: null,
    conflictingOwner: null,
    inputs: 'a',
    jobs: [] as ObservedJob[],
  }
  return planRefillJob({ spec, stored: present(5000), ...rest, history, ...more }, nowMs)
}
const low = { stored: present(1000) }

test.each([
  [1, 5000],
  [2, 10_000],
  [3, 20_000],
  [7, 320_000],
  [8, 600_000],
  [60, 600_000],
])('after %i failures the next refill starts after %i ms, not one earlier', (failures, waitMs) => {
  const given = { ...low, history: finished('Failed', failures) }
  const early = plan(given, NOW + waitMs - 1)
  expect([early.steps, early.retryAtMs]).toEqual([[], NOW + waitMs])
  const onTime = plan(given, NOW + waitMs)
  expect([onTime.steps, onTime.retryAtMs]).toMatchObject([[{ kind: 'start', refill: 2 }], null])
})

test('a failed refill with unknown inputs causes a back-off, as with the current inputs', () => {
  const failed = finished('Failed', 1)
  const lost = { ...failed, last: failed.last && { ...failed.last, inputs: '' } }
  expect(plan({ ...low, history: lost }).steps).toEqual([])
})

test('a cancelled refill is not a failure and causes no back-off', () => {
  const { history: now } = plan(
    { jobs: [job({ inputs: 'b' })], history: finished('Failed', 2) },
    NOW,
  )
  expect(now.failures).toBe(2)
  const cancelled = { ...finished('Cancelled', 2), started: 1 }
  expect(plan({ ...low, history: cancelled }).steps).toMatchObject([{ kind: 'start', refill: 2 }])
  const paused = { ...spec, isPaused: true }
  const other = { started: 2, failures: 1, last: finished('Failed', 1).last }
  const after = plan({ spec: paused, jobs: [job({ refill: 2 })], history: other })
  expect(after.history).toMatchObject({ failures: 1, last: { refill: 2, outcome: 'Cancelled' } })
})

test.each([
  ['succeeded', 10 * MINUTE_MS],
  ['failed', 60 * MINUTE_MS],
] as const)('a Job that %s is removed after %i ms, not one earlier', (state, keptMs) => {
  const jobs = [job({ state, finishedMs: NOW })]
  const past = { ...finished('Succeeded'), started: 1 }
  const removed = (nowMs: number, more: Partial<ObservedJob> = {}) =>
    plan({ jobs: jobs.map((one) => ({ ...one, ...more })), history: past }, nowMs).steps
  expect(removed(NOW + keptMs - 1)).toEqual([])
  expect(removed(NOW + keptMs)).toEqual([{ kind: 'remove', job: 'j1' }])
  expect(removed(NOW + keptMs, { isDeleting: true })).toEqual([])
  // Without a finish time the retention counts from the start.
  expect(removed(NOW + keptMs - 1000, { finishedMs: null })).toHaveLength(1)
})

test('a Job without a finish time counts as finished at its start', () => {
  const { history: now } = plan({ jobs: [job({ state: 'succeeded' })] })
  expect(now.last).toMatchObject({ finishedMs: NOW - 1000, reason: '' })
})

test.each([-60 * MINUTE_MS, 60 * MINUTE_MS])(
  'the back-off has its full length if the clock of the Job differs by %i ms',
  (skewMs) => {
    const startedMs = NOW + skewMs - 1000
    const jobs = [job({ state: 'failed', startedMs, finishedMs: NOW + skewMs })]
    const recording = plan({ ...low, jobs })
    expect([recording.steps, recording.retryAtMs]).toEqual([[], NOW + 5000])
    const { steps } = plan({ ...low, jobs, history: recording.history }, NOW + 5000)
    expect(steps).toContainEqual({ kind: 'start', refill: 2, fillTo: 5000 })
  },
)

test('a failure recorded by a clock that was ahead causes no back-off', () => {
  const given = { ...low, history: finished('Failed', 8) }
  expect(plan(given, NOW - 1).steps).toMatchObject([{ kind: 'start', refill: 2 }])
})

test('a reconcile is requeued when the next step is due, at least a second later', () => {
  const kept = (ms: number) => job({ state: 'succeeded', finishedMs: NOW - 10 * MINUTE_MS + ms })
  const past = finished('Succeeded')
  expect(plan({}).requeueAfterMs).toBeUndefined()
  expect(plan(low).requeueAfterMs).toBe(15_000) // it starts a Job
  expect(plan({ jobs: [job()] }).requeueAfterMs).toBe(15_000) // a Job is running
  expect(plan({ ...low, history: finished('Failed', 1) }).requeueAfterMs).toBe(5000)
  expect(plan({ jobs: [kept(4000)], history: past }).requeueAfterMs).toBe(4000)
  expect(plan({ jobs: [kept(9000), kept(4000)], history: past }).requeueAfterMs).toBe(4000)
  expect(plan({ jobs: [kept(1)], history: past }).requeueAfterMs).toBe(1000)
  expect(plan({ jobs: [{ ...kept(4000), isDeleting: true }] }).requeueAfterMs).toBeUndefined()
})

test('the owner is recorded if the store has none, or one that may be replaced', () => {
  const own = (more: object, mayReplace: string | null = null) =>
    plan({ stored: present(5000, more), mayReplace }).steps
  expect(own({})).toEqual([])
  expect(own({ target: 9 })).toEqual([{ kind: 'own', replaces: null }])
  expect(own({ owner: null }, 'n/q')).toEqual([{ kind: 'own', replaces: null }])
  expect(own({ owner: 'n/q' }, 'n/q')).toEqual([{ kind: 'own', replaces: 'n/q' }])
})

test('an older CodePool is reported before the owner in the store', () => {
  const { blocker } = plan({ conflictingOwner: 'n/r', stored: present(0, { owner: 'n/q' }) })
  expect(blocker?.message).toContain('the older CodePool n/r')
})

test('of two running Jobs the newer one continues', () => {
  const jobs = [job({ name: 'new', refill: 2 }), job({ name: 'old' })]
  for (const given of [jobs, jobs.toReversed()]) {
    const { steps, running } = plan({ jobs: given })
    expect([steps, running?.name]).toMatchObject([[{ kind: 'cancel', job: 'old' }], 'new'])
  }
})

test('a cancel observed twice in a stale cache is recorded once', () => {
  const given = { spec: { ...spec, isPaused: true }, jobs: [job()] }
  const first = plan(given)
  expect(first.changes).toMatchObject([{ refill: 1, outcome: 'Cancelled' }])
  const second = plan({ ...given, history: first.history }, NOW + 500)
  expect([second.history, second.changes]).toEqual([first.history, []])
  expect(second.steps).toMatchObject([{ kind: 'cancel', job: 'j1' }])
})

test('the cancel of an older Job does not replace the outcome of a newer one', () => {
  const jobs = [job({ inputs: 'b' }), job({ name: 'j2', refill: 2, state: 'failed' })]
  const { history: now, changes } = plan({ jobs })
  expect([now.last?.refill, now.failures, changes.length]).toEqual([2, 1, 2])
})

test('a started Job that is absent counts as deleted, even after a recorded refill', () => {
  const past = { ...finished('Succeeded'), started: 2 }
  expect(plan({ history: past }).history.last).toMatchObject({ refill: 2, reason: 'JobDeleted' })
  expect(plan({ history: { ...past, started: 1 } }).history).toEqual({ ...past, started: 1 })
})

test('an unknown level blocks refills and is the reported reason', () => {
  const { isWanted, blocker, steps } = plan({ stored: { kind: 'unknown', reason: 'w' } })
  expect([isWanted, blocker, steps]).toEqual([
    ...[false, { reason: 'StoreUnavailable', message: 'w' }, []],
  ])
})

test.each([
  [10, 0.1, 3600, 5000], // less than a code a second
  [1, 0.0001, 2000, 5000],
  [1, 1.0001, 3601, 5000], // a fraction of a code is rounded up
])('headroom of %d h at %d codes per second: from %i up to %i', (...given) => {
  const [headroomHours, rate, from, to] = given
  expect(refillMarks({ ...spec, headroomHours }, rate)).toEqual({ from, to })
})

test('a forecast fills to 100,000,000 codes at most, a target may exceed it', () => {
  const marks = (target: number) => refillMarks({ ...spec, target, headroomHours: 8760 }, 1e6).to
  expect([marks(9_999_999), marks(10_000_001)]).toEqual([99_999_990, 100_000_000])
  expect(marks(200_000_000)).toBe(200_000_000)
})

test('a refill fills to the mark of the observed rate', () => {
  const hours = { ...spec, headroomHours: 10 }
  const { steps } = plan({ spec: hours, stored: present(1000, { rate: 1 }) })
  expect(steps).toEqual([{ kind: 'start', refill: 1, fillTo: 45_000 }])
  const absent = plan({ spec: hours, stored: { kind: 'absent' } })
  expect(absent.steps).toEqual([{ kind: 'start', refill: 1, fillTo: 5000 }])
})
