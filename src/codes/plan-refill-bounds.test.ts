// The bounds of a refill plan: waits and keeping times to the millisecond, marks, and what is
// recorded once though it is seen twice.
import { expect, test } from '@jest/globals'
import { planRefillJob, refillMarks } from './plan-refill-job.ts'
import type { PoolSight, RefillHistory, SeenJob, StoredSight } from './refill-sight.ts'

const NOW = 1_000_000_000
const MINUTE_MS = 60_000
const spec = { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false }
const history: RefillHistory = { begun: 0, last: null, failures: 0 }
const there = (level: number, more: object = {}): StoredSight => ({
  ...{ kind: 'there', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const job = (more: Partial<SeenJob> = {}): SeenJob => ({
  ...{ name: 'j1', refill: 1, inputs: 'a', state: 'running', isDeleting: false },
  ...{ startedMs: NOW - 1000, finishedMs: null, trouble: null },
  ...more,
})
const ended = (outcome: 'Succeeded' | 'Failed' | 'Cancelled', failures = 0): RefillHistory => ({
  begun: 1,
  failures,
  last: {
    ...{ refill: 1, job: 'j1', inputs: 'a', outcome, startedMs: NOW, finishedMs: NOW },
    ...{ reason: '', message: '' },
  },
})
const plan = (more: Partial<PoolSight>, nowMs = NOW) => {
  const rest = { self: 'n/p', mayReplace: null, rival: null, inputs: 'a', jobs: [] as SeenJob[] }
  return planRefillJob({ spec, stored: there(5000), ...rest, history, ...more }, nowMs)
}
const low = { stored: there(1000) }

test.each([
  [1, 5000],
  [2, 10_000],
  [3, 20_000],
  [7, 320_000],
  [8, 600_000],
  [60, 600_000],
])('after %i failures the next refill starts after %i ms, not one earlier', (failures, waitMs) => {
  const given = { ...low, history: ended('Failed', failures) }
  const early = plan(given, NOW + waitMs - 1)
  expect([early.steps, early.retryAtMs]).toEqual([[], NOW + waitMs])
  const onTime = plan(given, NOW + waitMs)
  expect([onTime.steps, onTime.retryAtMs]).toMatchObject([[{ kind: 'begin', refill: 2 }], null])
})

test('a refill whose inputs are unknown waits like one of these inputs', () => {
  const failed = ended('Failed', 1)
  const lost = { ...failed, last: failed.last && { ...failed.last, inputs: '' } }
  expect(plan({ ...low, history: lost }).steps).toEqual([])
})

test('a cancelled refill is no failure, and the next waits for nothing', () => {
  const { history: now } = plan({ jobs: [job({ inputs: 'b' })], history: ended('Failed', 2) }, NOW)
  expect(now.failures).toBe(2)
  const cancelled = { ...ended('Cancelled', 2), begun: 1 }
  expect(plan({ ...low, history: cancelled }).steps).toMatchObject([{ kind: 'begin', refill: 2 }])
  const paused = { ...spec, isPaused: true }
  const other = { begun: 2, failures: 1, last: ended('Failed', 1).last }
  const after = plan({ spec: paused, jobs: [job({ refill: 2 })], history: other })
  expect(after.history).toMatchObject({ failures: 1, last: { refill: 2, outcome: 'Cancelled' } })
})

test.each([
  ['succeeded', 10 * MINUTE_MS],
  ['failed', 60 * MINUTE_MS],
] as const)('a Job that %s is removed after %i ms, not one earlier', (state, keptMs) => {
  const jobs = [job({ state, finishedMs: NOW })]
  const past = { ...ended('Succeeded'), begun: 1 }
  const removed = (nowMs: number, more: Partial<SeenJob> = {}) =>
    plan({ jobs: jobs.map((one) => ({ ...one, ...more })), history: past }, nowMs).steps
  expect(removed(NOW + keptMs - 1)).toEqual([])
  expect(removed(NOW + keptMs)).toEqual([{ kind: 'remove', job: 'j1' }])
  expect(removed(NOW + keptMs, { isDeleting: true })).toEqual([])
  // Without a time of its end it is kept from its start.
  expect(removed(NOW + keptMs - 1000, { finishedMs: null })).toHaveLength(1)
})

test('a Job without a time of its end has ended when it started', () => {
  const { history: now } = plan({ jobs: [job({ state: 'failed' })] })
  expect(now.last).toMatchObject({ finishedMs: NOW - 1000, reason: 'RefillFailed' })
})

test('a plan is looked at again when its next step is due, after a second at the earliest', () => {
  const kept = (ms: number) => job({ state: 'succeeded', finishedMs: NOW - 10 * MINUTE_MS + ms })
  const past = ended('Succeeded')
  expect(plan({}).requeueAfterMs).toBeUndefined()
  expect(plan(low).requeueAfterMs).toBe(15_000) // it starts a Job
  expect(plan({ jobs: [job()] }).requeueAfterMs).toBe(15_000) // a Job is at work
  expect(plan({ ...low, history: ended('Failed', 1) }).requeueAfterMs).toBe(5000)
  expect(plan({ jobs: [kept(4000)], history: past }).requeueAfterMs).toBe(4000)
  expect(plan({ jobs: [kept(1)], history: past }).requeueAfterMs).toBe(1000)
  expect(plan({ jobs: [{ ...kept(4000), isDeleting: true }] }).requeueAfterMs).toBeUndefined()
})

test('the owner is written down over the one that may be replaced, and over no other', () => {
  const own = (more: object, mayReplace: string | null = null) =>
    plan({ stored: there(5000, more), mayReplace }).steps
  expect(own({})).toEqual([])
  expect(own({ target: 9 })).toEqual([{ kind: 'own', replaces: null }])
  expect(own({ owner: null }, 'n/q')).toEqual([{ kind: 'own', replaces: null }])
  expect(own({ owner: 'n/q' }, 'n/q')).toEqual([{ kind: 'own', replaces: 'n/q' }])
})

test('an older CodePool is named before the owner in the store', () => {
  const { hindrance } = plan({ rival: 'n/r', stored: there(0, { owner: 'n/q' }) })
  expect(hindrance?.message).toContain('the CodePool n/r')
})

test('of two Jobs at work the newer goes on', () => {
  const jobs = [job({ name: 'new', refill: 2 }), job({ name: 'old' })]
  for (const given of [jobs, jobs.toReversed()]) {
    const { steps, running } = plan({ jobs: given })
    expect([steps, running?.name]).toMatchObject([[{ kind: 'cancel', job: 'old' }], 'new'])
  }
})

test('a cancel seen twice, because the cache is stale, is recorded and reported once', () => {
  const given = { spec: { ...spec, isPaused: true }, jobs: [job()] }
  const first = plan(given)
  expect(first.news).toMatchObject([{ refill: 1, outcome: 'Cancelled' }])
  const second = plan({ ...given, history: first.history }, NOW + 500)
  expect([second.history, second.news]).toEqual([first.history, []])
  expect(second.steps).toMatchObject([{ kind: 'cancel', job: 'j1' }])
})

test('the cancel of an older Job does not take the place of the end of a newer one', () => {
  const jobs = [job({ inputs: 'b' }), job({ name: 'j2', refill: 2, state: 'failed' })]
  const { history: now, news } = plan({ jobs })
  expect([now.last?.refill, now.failures, news.length]).toEqual([2, 1, 2])
})

test('a started Job that is absent counts as removed, also after one that is known', () => {
  const past = { ...ended('Succeeded'), begun: 2 }
  expect(plan({ history: past }).history.last).toMatchObject({ refill: 2, reason: 'JobGone' })
  expect(plan({ history: { ...past, begun: 1 } }).history).toEqual({ ...past, begun: 1 })
})

test('while the level is unknown no refill is wanted, and that is the reason given', () => {
  const { isWanted, hindrance, steps } = plan({ stored: { kind: 'unknown', why: 'w' } })
  expect([isWanted, hindrance, steps]).toEqual([
    ...[false, { reason: 'StoreUnavailable', message: 'w' }, []],
  ])
})

test.each([
  [10, 0.1, 3600, 5000], // less than a code a second
  [1, 0.0001, 2000, 5000],
  [1, 1.0001, 3601, 5000], // a part of a code is a code
])('headroom of %d h at %d codes a second: from %i up to %i', (...given) => {
  const [headroomHours, rate, from, to] = given
  expect(refillMarks({ ...spec, headroomHours }, rate)).toEqual({ from, to })
})

test('no forecast fills a pool to more than 100,000,000 codes, though a target does', () => {
  const marks = (target: number) => refillMarks({ ...spec, target, headroomHours: 8760 }, 1e6).to
  expect([marks(9_999_999), marks(10_000_001)]).toEqual([99_999_990, 100_000_000])
  expect(marks(200_000_000)).toBe(200_000_000)
})

test('a refill fills to the mark of the rate that was seen', () => {
  const hours = { ...spec, headroomHours: 10 }
  const { steps } = plan({ spec: hours, stored: there(1000, { rate: 1 }) })
  expect(steps).toEqual([{ kind: 'begin', refill: 1, fillTo: 45_000 }])
  const absent = plan({ spec: hours, stored: { kind: 'absent' } })
  expect(absent.steps).toEqual([{ kind: 'begin', refill: 1, fillTo: 5000 }])
})
