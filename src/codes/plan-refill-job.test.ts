// Refill plans: single cases, then simulations with stale state, stops between steps, and faults.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { planRefillJob, refillMarks } from './plan-refill-job.ts'
import type { ObservedPool, RefillHistory, ObservedJob, ObservedStore } from './observed-state.ts'

const NOW = 1_000_000_000
const spec = { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false }
const history: RefillHistory = { started: 0, last: null, failures: 0 }
const present = (level: number, more: object = {}): ObservedStore => ({
  ...{ kind: 'present', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const job = (more: Partial<ObservedJob> = {}): ObservedJob => ({
  name: 'p-refill-1',
  refill: 1,
  inputs: 'a',
  state: 'running',
  isDeleting: false,
  startedMs: NOW - 1000,
  finishedMs: null,
  problem: null,
  ...more,
})
const observe = (more: Partial<ObservedPool> = {}): ObservedPool => ({
  spec,
  stored: present(1000),
  self: 'n/p',
  mayReplace: null,
  conflictingOwner: null,
  inputs: 'a',
  jobs: [],
  history,
  ...more,
})
const plan = (more: Partial<ObservedPool> = {}) => planRefillJob(observe(more), NOW)
const failed = (failures: number, more: object = {}): RefillHistory => ({
  started: 3,
  failures,
  last: {
    ...{ refill: 3, job: 'j', inputs: 'a', outcome: 'Failed', startedMs: NOW - 9000 },
    ...{ finishedMs: NOW - 4000, reason: 'RefillFailed', message: 'no' },
    ...more,
  },
})
const stepsOf = (more: Partial<ObservedPool> = {}) => plan(more).steps.map(({ kind }) => kind)

const ownedByOther = { stored: present(0, { owner: 'n/q' }) }
const noTemplate = { inputs: { reason: 'T', message: 't' } }

test.each<readonly [string, Partial<ObservedPool>, readonly string[]]>([
  ['below low water a refill starts', {}, ['start']],
  ['at low water nothing starts', { stored: present(2000) }, []],
  ['an absent pool is filled', { stored: { kind: 'absent' } }, ['start']],
  [
    'while the store is unavailable nothing starts',
    { stored: { kind: 'unknown', reason: '' } },
    [],
  ],
  [
    'a pool without an owner is claimed first',
    { stored: present(0, { owner: null }) },
    ['own', 'start'],
  ],
  ['a changed target is recorded', { stored: present(4000, { target: 9000 }) }, ['own']],
  ['a pool of another owner is unchanged', ownedByOther, []],
  ['the annotated owner is replaced', { ...ownedByOther, mayReplace: 'n/q' }, ['own', 'start']],
  ['an owner other than the annotated one is kept', { ...ownedByOther, mayReplace: 'n/x' }, []],
  [
    'a pool without an owner is claimed despite an annotation',
    { stored: present(0, { owner: null }), mayReplace: 'n/q' },
    ['own', 'start'],
  ],
  ['a changed low-water mark is recorded', { stored: present(4000, { lowWater: 9 }) }, ['own']],
  ['of two CodePools of one pool the younger waits', { conflictingOwner: 'n/q' }, []],
  [
    'the younger CodePool does not claim a pool without an owner',
    { conflictingOwner: 'n/q', stored: present(0, { owner: null }) },
    [],
  ],
  [
    'the Job of a younger CodePool is cancelled',
    { conflictingOwner: 'n/q', jobs: [job()] },
    ['cancel'],
  ],
  [
    'a Job is cancelled if another owner has the pool',
    { ...ownedByOther, jobs: [job()] },
    ['cancel'],
  ],
  ['a running Job continues while the template is missing', { ...noTemplate, jobs: [job()] }, []],
  ['without a template nothing starts', noTemplate, []],
  ['while paused nothing starts', { spec: { ...spec, isPaused: true } }, []],
  [
    'pausing cancels a running Job',
    { spec: { ...spec, isPaused: true }, jobs: [job()] },
    ['cancel'],
  ],
  ['a running Job continues', { jobs: [job()] }, []],
  ['a Job of another spec is cancelled', { jobs: [job({ inputs: 'b' })] }, ['cancel']],
  ['the next Job waits for that deletion', { jobs: [job({ inputs: 'b', isDeleting: true })] }, []],
  [
    'of two running Jobs the older is cancelled',
    { jobs: [job(), job({ refill: 2, name: 'x' })] },
    ['cancel'],
  ],
  ['after a failure it backs off', { history: failed(1) }, ['start'].slice(1)],
  ['changed inputs cancel the back-off', { history: failed(9, { inputs: 'b' }) }, ['start']],
  ['the first back-off lasts 5 s', { history: failed(1, { finishedMs: NOW - 5000 }) }, ['start']],
])('%s', (_name, given, kinds) => {
  expect(stepsOf(given)).toEqual(kinds)
})

test('refill numbers continue from the history and the Jobs', () => {
  const step = (given: Partial<ObservedPool>) =>
    plan(given).steps.find(({ kind }) => kind === 'start')
  expect(step({})).toEqual({ kind: 'start', refill: 1, fillTo: 5000 })
  expect(
    step({ history: { ...history, started: 0 }, jobs: [job({ state: 'succeeded', refill: 7 })] }),
  ).toMatchObject({ refill: 8 })
  expect(plan({}).history.started).toBe(1)
})

test('an outcome is recorded before its Job is deleted', () => {
  const done = job({ state: 'succeeded', finishedMs: NOW - 86_400_000 })
  const first = plan({ stored: present(5000), jobs: [done] })
  expect(first.steps).toEqual([])
  expect(first.history.last).toMatchObject({ refill: 1, outcome: 'Succeeded' })
  const then = plan({ stored: present(5000), jobs: [done], history: first.history })
  expect([then.steps, then.changes]).toEqual([[{ kind: 'remove', job: 'p-refill-1' }], []])
})

test('a failure counts with its reason; a success resets the count', () => {
  const problem = { reason: 'SecretChanged', message: 'another secret' }
  const fail = (refill: number) => job({ refill, state: 'failed', finishedMs: NOW - 1, problem })
  const { history: now, retryAtMs, steps } = plan({ history: failed(1), jobs: [fail(4)] })
  expect(now).toMatchObject({ failures: 2, last: { refill: 4, reason: 'SecretChanged' } })
  expect([retryAtMs, steps]).toEqual([NOW + 10_000, []])
  expect(plan({ history: failed(1), jobs: [fail(5), fail(4)] }).history.failures).toBe(3)
  const jobs = [job({ refill: 5, state: 'succeeded' })]
  expect(plan({ history: now, jobs }).history.failures).toBe(0)
})

test('a Job deleted by another client counts as failed', () => {
  const { history: now, retryAtMs } = plan({ history: { started: 2, last: null, failures: 0 } })
  expect(now.last).toMatchObject({ refill: 2, outcome: 'Failed', reason: 'JobDeleted' })
  expect(retryAtMs).toBe(NOW + 5000)
})

test.each([
  [null, 100, 2000, 5000],
  [1, 0, 2000, 5000],
  [1, 1, 3600, 5000],
  [10, 1, 36_000, 45_000],
  [1000, 1, 40_000, 50_000],
])('headroom of %s h at %s codes per second: from %s up to %s', (...given) => {
  const [headroomHours, rate, from, to] = given
  expect(refillMarks({ ...spec, headroomHours }, rate)).toEqual({ from, to })
})

test('a pool filled to its mark needs no immediate refill', () => {
  const codes = fc.integer({ min: 1000, max: 50_000_000 })
  const inputs = fc.record({
    lowWater: codes,
    more: codes,
    headroomHours: fc.option(fc.integer({ min: 1, max: 8760 })),
    rate: fc.double({ min: 0, max: 1e6, noNaN: true }),
  })
  fc.assert(
    fc.property(inputs, ({ lowWater, more, headroomHours, rate }) => {
      const target = lowWater + more
      const marks = refillMarks({ lowWater, target, headroomHours, isPaused: false }, rate)
      expect(marks.to).toBeGreaterThanOrEqual(target)
      expect(marks.from).toBeLessThan(marks.to)
      expect(marks.from).toBeGreaterThanOrEqual(lowWater)
    }),
  )
})

/** A simulation of one pool whose controller observes stale state. */
class Simulation {
  nowMs = NOW
  level = 0
  inputs = 'a'
  isPaused = false
  jobs: ObservedJob[] = []
  recorded: RefillHistory = history
  started = 0
  /** The Jobs in the controller's cache, possibly stale. */
  cache: ObservedJob[] = []

  observe(): ObservedPool {
    // Like observe(): a started refill that is not in the cache is read from the API server.
    const newestObserved = Math.max(
      this.recorded.last?.refill ?? 0,
      ...this.cache.map(({ refill }) => refill),
    )
    const fetched = this.jobs.filter(
      ({ refill }) => refill === this.recorded.started && this.recorded.started > newestObserved,
    )
    return observe({
      spec: { ...spec, isPaused: this.isPaused },
      stored: present(this.level),
      inputs: this.inputs,
      jobs: [...this.cache, ...fetched],
      history: this.recorded,
    })
  }

  /** Reconciles, but stops after `stepsMax` steps; writing the status is the last step. */
  reconcile(stepsMax: number): void {
    const { steps, history: next } = planRefillJob(this.observe(), this.nowMs)
    const running = () => this.jobs.filter(({ state }) => state === 'running')
    steps.slice(0, stepsMax).forEach((step) => {
      if (step.kind === 'start') {
        const exists = this.jobs.some(({ refill }) => refill === step.refill)
        if (!exists) {
          const { refill } = step
          const created = { name: `j${refill}`, refill, inputs: this.inputs, startedMs: this.nowMs }
          this.jobs.push(job(created))
          this.started++
        }
      } else if (step.kind === 'cancel' || step.kind === 'remove') {
        const deleted = this.jobs.find(({ name }) => name === step.job)
        if (step.kind === 'remove' && deleted !== undefined)
          expect(this.recorded.last?.refill ?? 0).toBeGreaterThanOrEqual(deleted.refill)
        this.jobs = this.jobs.filter((one) => one !== deleted)
      }
    })
    if (stepsMax > steps.length) this.recorded = next
    expect(running().length).toBeLessThanOrEqual(1)
  }

  finish(state: 'succeeded' | 'failed'): void {
    this.jobs = this.jobs.map((one) => {
      if (one.state !== 'running') return one
      if (state === 'succeeded') this.level = spec.target
      return { ...one, state, finishedMs: this.nowMs }
    })
  }
}

type Action = (simulation: Simulation) => void

const action = fc.oneof<fc.Arbitrary<Action>[]>(
  fc.integer({ min: 0, max: 5 }).map((steps) => (simulation) => {
    simulation.reconcile(steps)
  }),
  fc.boolean().map((isPaused) => (simulation) => {
    simulation.isPaused = isPaused
  }),
  fc.integer({ min: 0, max: 4_000_000 }).map((ms) => (simulation) => {
    simulation.nowMs += ms
  }),
  fc.constantFrom<Action>(
    (simulation) => {
      simulation.cache = simulation.jobs
    },
    (simulation) => {
      simulation.finish('succeeded')
    },
    (simulation) => {
      simulation.finish('failed')
    },
    (simulation) => {
      simulation.level = Math.max(0, simulation.level - 1000)
    },
    (simulation) => {
      simulation.jobs = simulation.jobs.slice(1)
    },
    (simulation) => {
      simulation.inputs = simulation.inputs === 'a' ? 'b' : 'a'
    },
  ),
)

test('two refills never run at once despite stale or partial steps, and the plans converge', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
      const simulation = new Simulation()
      for (const act of actions) act(simulation)
      // Without further faults, the pool must be filled, and then no steps remain.
      simulation.isPaused = false
      for (let i = 0; i < 12; i++) {
        simulation.nowMs += 11 * 60_000
        simulation.cache = simulation.jobs
        simulation.reconcile(10)
        simulation.cache = simulation.jobs
        simulation.finish('succeeded')
      }
      expect(simulation.level).toBeGreaterThanOrEqual(spec.lowWater)
      simulation.nowMs += 3_600_000
      simulation.reconcile(10)
      simulation.cache = simulation.jobs
      expect(planRefillJob(simulation.observe(), simulation.nowMs).steps).toEqual([])
      expect(simulation.jobs).toEqual([])
    }),
    { numRuns: 500 },
  )
})
