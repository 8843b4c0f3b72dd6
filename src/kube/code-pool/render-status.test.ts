// The rendered status of a CodePool: when the level is updated, rounding, and the last refill.
import { expect, test } from '@jest/globals'
import type {
  ObservedPool,
  ObservedStore,
  RefillOutcome,
  RefillPlan,
} from '../../codes/observed-state.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'
import { formatDuration, renderStatus } from './render-status.ts'

const NOW = Date.parse('2000-01-01T01:00:00Z')
const present = (level: number, perHour = 0): ObservedStore => ({
  ...{ kind: 'present', level, rate: perHour / 3600 },
  ...{ owner: null, lowWater: 100, target: 1000 },
})
const unknown: ObservedStore = { kind: 'unknown', reason: 'unavailable' }
const outcome: RefillOutcome = {
  ...{ refill: 2, job: 'j', inputs: 'i', outcome: 'Failed', reason: 'R', message: 'm' },
  ...{ startedMs: NOW - 60_500, finishedMs: NOW },
}

/** Renders the status of a pool with the low-water mark 100 and the target 1000. */
function render(
  stored: ObservedStore,
  {
    before,
    changes = [],
    last = null,
    generation,
  }: {
    before?: CodePoolStatus
    changes?: readonly RefillOutcome[]
    last?: RefillOutcome | null
    generation?: number
  } = {},
) {
  const pool: CodePool = {
    metadata: {
      ...{ name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' },
      ...(generation !== undefined && { generation }),
    },
    spec: {
      ...{ lowWater: 100, target: 1000, paused: false },
      codeSecret: { name: 's', key: 'k' },
    },
    ...(before !== undefined && { status: before }),
  }
  const plan: RefillPlan = {
    ...{ steps: [], history: { started: 2, failures: 1, last }, changes, blocker: null },
    ...{ isWanted: false, retryAtMs: null, running: null, requeueAfterMs: undefined },
  }
  const observed: ObservedPool = {
    spec: { lowWater: 100, target: 1000, headroomHours: null, isPaused: false },
    ...{ stored, self: 'n/p', mayReplace: null, conflictingOwner: null, inputs: 'i', jobs: [] },
    history: plan.history,
  }
  return renderStatus(pool, { observed, plan, storeName: 'shared', nowMs: NOW })
}
const levelOf = (...args: Parameters<typeof render>) => {
  const { level, claimRate, timeToEmpty } = render(...args)
  return [level, claimRate, timeToEmpty]
}

test('a new status has the level, the history and the conditions of the plan', () => {
  const { conditions, ...fields } = render(present(500, 50), { generation: 3 })
  expect(fields).toEqual({
    ...{ observedGeneration: 3, storeName: 'shared', refills: 2, failures: 1 },
    ...{ level: 500, claimRate: 50, timeToEmpty: '10h' },
  })
  expect(conditions?.[0]).toMatchObject({
    ...{ type: 'Ready', status: 'True', observedGeneration: 3 },
    lastTransitionTime: '2000-01-01T01:00:00Z',
  })
  expect(render(present(500)).observedGeneration).toBe(0)
})

test('a condition keeps its transition time from the previous status', () => {
  const [ready] = render(present(500)).conditions ?? []
  if (ready === undefined) throw new Error('there is no condition')
  const lastTransitionTime = '1999-01-01T00:00:00Z'
  const before = { conditions: [{ ...ready, lastTransitionTime }] }
  expect(render(present(500), { before }).conditions?.[0]).toMatchObject({ lastTransitionTime })
})

const before = { level: 500, claimRate: 10, timeToEmpty: '2d2h' }

test.each<readonly [number, number, boolean]>([
  [500, 10, false],
  [549, 10, false],
  [550, 10, true],
  [451, 10, false],
  [450, 10, true],
  [500, 99, false],
  [500, 0, true],
])('a status with the level 500 is updated for %i and %i claims per hour: %s', (...row) => {
  const [level, perHour, isUpdated] = row
  const [shown, , timeToEmpty] = levelOf(present(level, perHour), { before })
  expect([shown, timeToEmpty !== before.timeToEmpty]).toEqual(
    isUpdated ? [level, true] : [500, false],
  )
})

test.each<readonly [number, number, number]>([
  [100, 99, 99],
  [99, 100, 100],
  [101, 100, 101],
  [99, 98, 99],
  [1, 0, 0],
  [0, 1, 1],
  [2, 1, 2],
])('a status with the level %i reports %i as %i', (shown, level, expected) => {
  const status = { level: shown, claimRate: 10, timeToEmpty: '5h' }
  expect(levelOf(present(level, 10), { before: status })[0]).toBe(expected)
})

test('an idle pool is not updated for a small change', () => {
  const idle = { level: 500, claimRate: 0, timeToEmpty: 'never' }
  expect(levelOf(present(501), { before: idle })).toEqual([500, 0, 'never'])
})

test('a status without a level gets the current one', () => {
  expect(levelOf(present(500), { before: {} })).toEqual([500, 0, 'never'])
})

test('an unknown level keeps what was reported', () => {
  expect(levelOf(unknown, { before })).toEqual([500, 10, '2d2h'])
  const status = render(unknown)
  for (const field of ['level', 'claimRate', 'timeToEmpty', 'lastRefill'])
    expect(status).not.toHaveProperty(field)
})

test('a refill updates the level, and removes an unknown one', () => {
  const changes = [outcome]
  expect(levelOf(present(501, 10), { before, changes })).toEqual([501, 10, '2d2h'])
  expect(levelOf(unknown, { before, changes })).toEqual([undefined, undefined, undefined])
})

test('a pool that has never been filled has the level 0', () => {
  expect(levelOf({ kind: 'absent' })).toEqual([0, 0, 'never'])
})

test.each([
  [0.4, 0],
  [1.4, 1],
  [9.6, 10],
  [99, 99],
  [123, 120],
  [1250, 1300],
  [98_765, 99_000],
])('a rate of %d claims per hour is reported as %i', (perHour, expected) => {
  expect(levelOf(present(500, perHour))[1]).toBe(expected)
})

test.each([
  [1, '1s'],
  [60, '1m'],
  [3599, '59m59s'],
  [86_400, '1d'],
  [86_399, '23h59m'],
  [90_000, '1d1h'],
])('%d s are formatted as %s', (seconds, formatted) => {
  expect(formatDuration(seconds)).toBe(formatted)
})

test('the last refill has its times, and a reason and a message if there are any', () => {
  const common = { refill: 2, job: 'j', inputs: 'i' }
  const times = { startedAt: '2000-01-01T00:58:59Z', finishedAt: '2000-01-01T01:00:00Z' }
  expect(
    render(present(500), { last: { ...outcome, message: 'x'.repeat(1025) } }).lastRefill,
  ).toEqual({ ...common, outcome: 'Failed', ...times, reason: 'R', message: 'x'.repeat(1024) })
  const last: RefillOutcome = { ...outcome, outcome: 'Succeeded', reason: '', message: '' }
  expect(render(present(500), { last }).lastRefill).toEqual({
    ...{ ...common, outcome: 'Succeeded', ...times },
  })
})
