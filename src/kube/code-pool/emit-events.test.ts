// The log entries of refills that finish before their start is reported.
import { expect, test } from '@jest/globals'
import type { RefillOutcome, RefillPlan } from '../../codes/observed-state.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { CodePool } from './code-pool.ts'
import { emitEvents } from './emit-events.ts'
import { jobNameOf } from './refill-jobs.ts'

const pool: CodePool = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' },
  spec: { lowWater: 1, target: 2, paused: false, codeSecret: { name: 's', key: 'k' } },
}
const outcome: RefillOutcome = {
  ...{ refill: 2, job: 'j', inputs: '', outcome: 'Succeeded', startedMs: 0, finishedMs: 5 },
  ...{ message: '', reason: '' },
}
const planOf = (change: RefillOutcome): RefillPlan => ({
  ...{ steps: [], history: { started: 2, last: change, failures: 0 }, changes: [change] },
  ...{ blocker: null, isWanted: false, retryAtMs: null, running: null, requeueAfterMs: undefined },
})
const fields = { namespace: 'n', pool: 'p', refill: 2 }
// Without a level: only the level after the refill is known.
const started = (job: string) => ['refill started', { ...fields, job }]
const completed = ['refill completed', { ...fields, job: 'j', level: 7, tookMs: 5 }]
const deleted = { outcome: 'Failed', job: '', reason: 'JobDeleted', message: 'm' } as const
const failure = { ...fields, job: '', level: 7, tookMs: 5, reason: 'JobDeleted', detail: 'm' }

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
