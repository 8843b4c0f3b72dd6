// Events, log entries and counts of refills, and the events of problems.
import { expect, test } from '@jest/globals'
import type { RefillOutcome, RefillPlan } from '../../codes/observed-state.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { EventInput } from '../events.ts'
import type { CodePool } from './code-pool.ts'
import { emitEvents } from './emit-events.ts'
import { jobNameOf } from './refill-jobs.ts'

const pool: CodePool = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' },
  spec: { lowWater: 1, target: 2, paused: false, codeSecret: { name: 's', key: 'k' } },
}
const outcome: RefillOutcome = {
  ...{
    refill: 2,
    job: 'j',
    inputs: '',
    outcome: 'Succeeded',
    startedMs: 60_000,
    finishedMs: 62_400,
  },
  ...{ message: '', reason: '' },
}
const planOf = (change: RefillOutcome): RefillPlan => ({
  ...{ steps: [], history: { started: 2, last: change, failures: 0 }, changes: [change] },
  ...{ blocker: null, isWanted: false, retryAtMs: null, running: null, requeueAfterMs: undefined },
})
const fields = { namespace: 'n', pool: 'p', refill: 2 }
// Without a level: only the level after the refill is known.
const started = (job: string) => ['refill started', { ...fields, job }]
const completed = ['refill completed', { ...fields, job: 'j', poolLevel: 7, tookMs: 2400 }]
const deleted = { outcome: 'Failed', job: '', reason: 'JobDeleted', message: 'm' } as const
const failure = {
  ...fields,
  job: '',
  poolLevel: 7,
  tookMs: 2400,
  reason: 'JobDeleted',
  detail: 'm',
}

test.each([
  [1, {}, [started('j'), completed]],
  [2, {}, [completed]],
  [1, deleted, [started(jobNameOf(pool, 2)), ['refill failed', failure]]],
])('with %i starts reported before, refill 2 is logged: %j', (refills, change, expected) => {
  const logged: [string | undefined, object][] = []
  const [events, metrics] = [[] as string[], createMetrics()]
  const deps = {
    events: { emit: (one: { reason: string }) => events.push(one.reason) },
    metrics,
    log: {
      info: (fields: object, msg?: string) => logged.push([msg, fields]),
      warn: (fields: object, msg?: string) => logged.push([msg, fields]),
    },
  }
  const lastRefill = {
    ...{ refill: 2, job: 'j', inputs: '', outcome: 'Succeeded' as const },
    ...{ startedAt: '', finishedAt: '' },
  }
  const status = { refills: 2, level: 7, lastRefill }
  emitEvents(
    { ...deps, events: { ...deps.events, flush: () => Promise.resolve() } },
    {
      ...{
        pool: { ...pool, status: { refills } },
        status,
        plan: planOf({ ...outcome, ...change }),
      },
    },
  )
  expect(logged).toEqual(expected)
  expect(events).toHaveLength(expected.length)
})

type Status = CodePool['status']

/** Emits the events of a change from `before` to `status`; returns them with notes. */
async function emitted(
  before: Status,
  status: NonNullable<Status>,
  plan: Partial<RefillPlan> = {},
) {
  const events: EventInput[] = []
  const logged: [string, object][] = []
  const metrics = createMetrics()
  const log = {
    info: (entry: object) => logged.push(['info', entry]),
    warn: (entry: object) => logged.push(['warn', entry]),
  }
  const recorder = {
    emit: (event: EventInput) => events.push(event),
    flush: () => Promise.resolve(),
  }
  emitEvents(
    { events: recorder, metrics, log },
    {
      pool: { ...pool, ...(before !== undefined && { status: before }) },
      ...{ status, plan: { ...planOf(outcome), changes: [], ...plan } },
    },
  )
  const { values } = await metrics.refillJobs.get()
  const counts = values.filter(({ value }) => value > 0).map(({ labels }) => labels.result)
  const notes = events.map(({ type, reason, action, note }) => [type, reason, action, note].join())
  return { notes, counts, logged, regarding: events[0]?.regarding }
}

test.each<readonly [Partial<RefillOutcome>, string]>([
  [{}, 'Normal,RefillSucceeded,Refill,Refill 2 completed after 2 s'],
  [
    { outcome: 'Cancelled', message: 'paused' },
    'Normal,RefillCancelled,Cancel,Refill 2 was cancelled: paused',
  ],
  [{ outcome: 'Failed', message: 'full' }, 'Warning,RefillFailed,Refill,Refill 2 failed: full'],
  [{ finishedMs: 59_000 }, 'Normal,RefillSucceeded,Refill,Refill 2 completed after 0 s'],
])('the outcome %j is an event, and is counted', async (more, note) => {
  const change = { ...outcome, finishedMs: 61_600, ...more }
  const given = await emitted({ refills: 2 }, { refills: 2 }, { changes: [change] })
  expect(given.notes).toEqual([note])
  expect(given.counts).toEqual([change.outcome.toLowerCase()])
  expect(given.regarding).toEqual({
    ...{ apiVersion: 'curtail.dev/v1alpha1', kind: 'CodePool', name: 'p', namespace: 'n' },
    uid: 'u',
  })
  const [entry] = given.logged
  expect(entry).toMatchObject([
    change.outcome === 'Failed' ? 'warn' : 'info',
    { tookMs: Math.max(0, change.finishedMs - 60_000) },
  ])
})

test('a start is an event with the level that the refill fills to', async () => {
  const steps = [{ kind: 'start', refill: 1, fillTo: 9 }] as const
  const { notes, counts, logged } = await emitted(undefined, { refills: 1, level: 3 }, { steps })
  expect(notes).toEqual(['Normal,RefillStarted,Refill,Refill 1 has started, up to 9 codes'])
  expect([counts, logged]).toEqual([
    ['started'],
    [
      [
        'info',
        { namespace: 'n', pool: 'p', refill: 1, job: jobNameOf(pool, 1), poolLevel: 3, fillTo: 9 },
      ],
    ],
  ])
  const other = await emitted({ refills: 0 }, { refills: 1 })
  expect(other.notes).toEqual(['Normal,RefillStarted,Refill,Refill 1 has started'])
})

test('a start is reported once', async () => {
  expect((await emitted({ refills: 1 }, { refills: 1 })).notes).toEqual([])
  expect((await emitted(undefined, {})).notes).toEqual([])
})

const degraded = (status: 'True' | 'False', reason: string) => ({
  conditions: [{ type: 'Degraded', status, reason, message: 'm', lastTransitionTime: '' }],
})

test.each<readonly [Status, NonNullable<Status>, readonly string[]]>([
  [undefined, degraded('True', 'A'), ['Warning,A,Reconcile,m']],
  [degraded('False', 'B'), degraded('True', 'A'), ['Warning,A,Reconcile,m']],
  [degraded('True', 'B'), degraded('True', 'A'), ['Warning,A,Reconcile,m']],
  [degraded('True', 'A'), degraded('True', 'A'), []],
  [degraded('True', 'A'), degraded('False', 'B'), ['Normal,Recovered,Reconcile,m']],
  [undefined, degraded('False', 'B'), []],
  [degraded('True', 'A'), {}, []],
])('from %j to %j the events are %j', async (before, status, expected) => {
  expect((await emitted(before, status)).notes).toEqual(expected)
})
