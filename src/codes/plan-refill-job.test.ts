// What becomes of a pool's refills: each case by itself, and then worlds in which the controller
// sees too late, is stopped between any two steps, and Jobs fail or hang.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { planRefillJob, refillMarks } from './plan-refill-job.ts'
import type { PoolSight, RefillHistory, SeenJob, StoredSight } from './refill-sight.ts'

const NOW = 1_000_000_000
const spec = { lowWater: 2000, target: 5000, headroomHours: null, isPaused: false }
const history: RefillHistory = { begun: 0, last: null, failures: 0 }
const there = (level: number, more: object = {}): StoredSight => ({
  ...{ kind: 'there', level, rate: 0, owner: 'n/p', lowWater: 2000, target: 5000 },
  ...more,
})
const job = (more: Partial<SeenJob> = {}): SeenJob => ({
  name: 'p-refill-1',
  refill: 1,
  inputs: 'a',
  state: 'running',
  isDeleting: false,
  startedMs: NOW - 1000,
  finishedMs: null,
  trouble: null,
  ...more,
})
const sight = (more: Partial<PoolSight> = {}): PoolSight => ({
  spec,
  stored: there(1000),
  self: 'n/p',
  mayReplace: null,
  rival: null,
  inputs: 'a',
  jobs: [],
  history,
  ...more,
})
const plan = (more: Partial<PoolSight> = {}) => planRefillJob(sight(more), NOW)
const failed = (failures: number, more: object = {}): RefillHistory => ({
  begun: 3,
  failures,
  last: {
    ...{ refill: 3, job: 'j', inputs: 'a', outcome: 'Failed', startedMs: NOW - 9000 },
    ...{ finishedMs: NOW - 4000, reason: 'RefillFailed', message: 'no' },
    ...more,
  },
})
const begins = (more: Partial<PoolSight> = {}) => plan(more).steps.map(({ kind }) => kind)

const byOther = { stored: there(0, { owner: 'n/q' }) }
const noTemplate = { inputs: { reason: 'T', message: 't' } }

test.each<readonly [string, Partial<PoolSight>, readonly string[]]>([
  ['below low water a refill is begun', {}, ['begin']],
  ['at low water nothing is done', { stored: there(2000) }, []],
  ['a pool that was never filled is filled', { stored: { kind: 'absent' } }, ['begin']],
  ['while the store is away nothing is done', { stored: { kind: 'unknown', why: '' } }, []],
  ['a pool of nobody is taken first', { stored: there(0, { owner: null }) }, ['own', 'begin']],
  ['marks that changed are written down', { stored: there(4000, { target: 9000 }) }, ['own']],
  ['a pool of another is left alone', byOther, []],
  ['unless the operator has it taken', { ...byOther, mayReplace: 'n/q' }, ['own', 'begin']],
  ['but not another owner than the one named', { ...byOther, mayReplace: 'n/x' }, []],
  [
    'a pool of nobody is taken whatever owner is named',
    { stored: there(0, { owner: null }), mayReplace: 'n/q' },
    ['own', 'begin'],
  ],
  ['marks are written down, the low one too', { stored: there(4000, { lowWater: 9 }) }, ['own']],
  ['of two CodePools of one pool the younger waits', { rival: 'n/q' }, []],
  [
    'also for a pool of nobody, which it does not take',
    { rival: 'n/q', stored: there(0, { owner: null }) },
    [],
  ],
  ['what it has at work is ended', { rival: 'n/q', jobs: [job()] }, ['cancel']],
  ['as it is when another owns the pool', { ...byOther, jobs: [job()] }, ['cancel']],
  [
    'a Job at work is left to it while the template is missing',
    { ...noTemplate, jobs: [job()] },
    [],
  ],
  ['without a template nothing is begun', noTemplate, []],
  ['a paused one begins nothing', { spec: { ...spec, isPaused: true } }, []],
  [
    'one that is paused at work is ended',
    { spec: { ...spec, isPaused: true }, jobs: [job()] },
    ['cancel'],
  ],
  ['a Job at work is left to it', { jobs: [job()] }, []],
  ['a Job of another spec is ended', { jobs: [job({ inputs: 'b' })] }, ['cancel']],
  ['and the next waits until it has gone', { jobs: [job({ inputs: 'b', isDeleting: true })] }, []],
  [
    'of two at work the older is ended',
    { jobs: [job(), job({ refill: 2, name: 'x' })] },
    ['cancel'],
  ],
  ['after a failure it waits', { history: failed(1) }, ['begin'].slice(1)],
  ['but not for what has changed since', { history: failed(9, { inputs: 'b' }) }, ['begin']],
  ['nor for long after the first', { history: failed(1, { finishedMs: NOW - 5000 }) }, ['begin']],
])('%s', (_name, given, kinds) => {
  expect(begins(given)).toEqual(kinds)
})

test('refills are numbered on from what is known, whoever knows it', () => {
  const step = (given: Partial<PoolSight>) => plan(given).steps.find(({ kind }) => kind === 'begin')
  expect(step({})).toEqual({ kind: 'begin', refill: 1, fillTo: 5000 })
  expect(
    step({ history: { ...history, begun: 0 }, jobs: [job({ state: 'succeeded', refill: 7 })] }),
  ).toMatchObject({ refill: 8 })
  expect(plan({}).history.begun).toBe(1)
})

test('what ended is written down before it is removed', () => {
  const done = job({ state: 'succeeded', finishedMs: NOW - 86_400_000 })
  const first = plan({ stored: there(5000), jobs: [done] })
  expect(first.steps).toEqual([])
  expect(first.history.last).toMatchObject({ refill: 1, outcome: 'Succeeded' })
  const then = plan({ stored: there(5000), jobs: [done], history: first.history })
  expect([then.steps, then.news]).toEqual([[{ kind: 'remove', job: 'p-refill-1' }], []])
})

test('a failed Job counts, with why; a good one ends the counting', () => {
  const trouble = { reason: 'SecretChanged', message: 'another secret' }
  const jobs = [job({ refill: 4, state: 'failed', finishedMs: NOW - 1, trouble })]
  const { history: now, retryAtMs, steps } = plan({ history: failed(1), jobs })
  expect(now).toMatchObject({ failures: 2, last: { refill: 4, reason: 'SecretChanged' } })
  expect([retryAtMs, steps]).toEqual([NOW - 1 + 10_000, []])
  const good = [job({ refill: 5, state: 'succeeded', finishedMs: NOW })]
  expect(plan({ history: now, jobs: good }).history.failures).toBe(0)
})

test('a Job that somebody removed counts as failed', () => {
  const { history: now, retryAtMs } = plan({ history: { begun: 2, last: null, failures: 0 } })
  expect(now.last).toMatchObject({ refill: 2, outcome: 'Failed', reason: 'JobGone' })
  expect(retryAtMs).toBe(NOW + 5000)
})

test.each([
  [null, 100, 2000, 5000],
  [1, 0, 2000, 5000],
  [1, 1, 3600, 5000],
  [10, 1, 36_000, 45_000],
  [1000, 1, 40_000, 50_000],
])('headroom of %s h at %s a second: from %s up to %s', (...given) => {
  const [headroomHours, rate, from, to] = given
  expect(refillMarks({ ...spec, headroomHours }, rate)).toEqual({ from, to })
})

test('a pool filled to its mark never asks to be filled at once again', () => {
  const codes = fc.integer({ min: 1000, max: 50_000_000 })
  const asked = fc.record({
    lowWater: codes,
    more: codes,
    headroomHours: fc.option(fc.integer({ min: 1, max: 8760 })),
    rate: fc.double({ min: 0, max: 1e6, noNaN: true }),
  })
  fc.assert(
    fc.property(asked, ({ lowWater, more, headroomHours, rate }) => {
      const target = lowWater + more
      const marks = refillMarks({ lowWater, target, headroomHours, isPaused: false }, rate)
      expect(marks.to).toBeGreaterThanOrEqual(target)
      expect(marks.from).toBeLessThan(marks.to)
      expect(marks.from).toBeGreaterThanOrEqual(lowWater)
    }),
  )
})

/** A world of one pool, whose controller sees it as it was some steps ago. */
class World {
  nowMs = NOW
  level = 0
  inputs = 'a'
  isPaused = false
  jobs: SeenJob[] = []
  written: RefillHistory = history
  begun = 0
  /** What the controller still believes to be there. */
  cache: SeenJob[] = []

  see(): PoolSight {
    // As observe() does: a refill that was begun and is not in the cache is asked for.
    const known = Math.max(
      this.written.last?.refill ?? 0,
      ...this.cache.map(({ refill }) => refill),
    )
    const asked = this.jobs.filter(
      ({ refill }) => refill === this.written.begun && this.written.begun > known,
    )
    return sight({
      spec: { ...spec, isPaused: this.isPaused },
      stored: there(this.level),
      inputs: this.inputs,
      jobs: [...this.cache, ...asked],
      history: this.written,
    })
  }

  /** Reconciles, but is stopped after so many steps; the status is the last of them. */
  reconcile(stepsMax: number): void {
    const { steps, history: next } = planRefillJob(this.see(), this.nowMs)
    const atWork = () => this.jobs.filter(({ state }) => state === 'running')
    steps.slice(0, stepsMax).forEach((step) => {
      if (step.kind === 'begin') {
        const isThere = this.jobs.some(({ refill }) => refill === step.refill)
        if (!isThere) {
          const { refill } = step
          const made = { name: `j${refill}`, refill, inputs: this.inputs, startedMs: this.nowMs }
          this.jobs.push(job(made))
          this.begun++
        }
      } else if (step.kind === 'cancel' || step.kind === 'remove') {
        const gone = this.jobs.find(({ name }) => name === step.job)
        if (step.kind === 'remove' && gone !== undefined)
          expect(this.written.last?.refill ?? 0).toBeGreaterThanOrEqual(gone.refill)
        this.jobs = this.jobs.filter((one) => one !== gone)
      }
    })
    if (stepsMax > steps.length) this.written = next
    expect(atWork().length).toBeLessThanOrEqual(1)
  }

  end(state: 'succeeded' | 'failed'): void {
    this.jobs = this.jobs.map((one) => {
      if (one.state !== 'running') return one
      if (state === 'succeeded') this.level = spec.target
      return { ...one, state, finishedMs: this.nowMs }
    })
  }
}

type Happening = (world: World) => void

const happening = fc.oneof<fc.Arbitrary<Happening>[]>(
  fc.integer({ min: 0, max: 5 }).map((steps) => (world) => {
    world.reconcile(steps)
  }),
  fc.boolean().map((isPaused) => (world) => {
    world.isPaused = isPaused
  }),
  fc.integer({ min: 0, max: 4_000_000 }).map((ms) => (world) => {
    world.nowMs += ms
  }),
  fc.constantFrom<Happening>(
    (world) => {
      world.cache = world.jobs
    },
    (world) => {
      world.end('succeeded')
    },
    (world) => {
      world.end('failed')
    },
    (world) => {
      world.level = Math.max(0, world.level - 1000)
    },
    (world) => {
      world.jobs = world.jobs.slice(1)
    },
    (world) => {
      world.inputs = world.inputs === 'a' ? 'b' : 'a'
    },
  ),
)

test('never two refills at work, whatever is seen late or left half done; and it heals', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 80 }), (happenings) => {
      const world = new World()
      for (const happen of happenings) happen(world)
      // From here on all goes well: the pool must come to be full, and then nothing be done.
      world.isPaused = false
      for (let i = 0; i < 12; i++) {
        world.nowMs += 11 * 60_000
        world.cache = world.jobs
        world.reconcile(10)
        world.cache = world.jobs
        world.end('succeeded')
      }
      expect(world.level).toBeGreaterThanOrEqual(spec.lowWater)
      world.nowMs += 3_600_000
      world.reconcile(10)
      world.cache = world.jobs
      expect(planRefillJob(world.see(), world.nowMs).steps).toEqual([])
      expect(world.jobs).toEqual([])
    }),
    { numRuns: 500 },
  )
})
