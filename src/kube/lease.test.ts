// Leader election with a slow API server: two candidates never lead at the same time, for any delay
// of requests and responses.
import { beforeEach, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { calls, type Candidate, type Delays, SlowLeases } from '../../test/kit/kube/slow-leases.ts'

const LOST: Delays = { requestMs: Infinity }
let world: SlowLeases

beforeEach(() => {
  world = new SlowLeases()
})

test('a renewal counts from its request, not from its response', async () => {
  // Create and renew; the response of the renewal takes almost as long as the renew deadline.
  const one = world.add('one', calls([{}, {}, { responseMs: 7900 }], LOST))
  const two = world.add('two')
  await world.advance(11_900)
  expect([one.reported, world.leaders()]).toEqual([['won 0'], ['one']])
  await world.advance(100)
  expect(world.leaders()).toEqual([])
  await world.advance(10_000)
  expect([world.leaders(), world.overlaps]).toEqual([['two'], []])
  expect(two.reported).toHaveLength(1)
})

test('the wait for a Lease starts at the response to a read, not at its request', async () => {
  world.add('one', ({ nth }) => (nth <= 6 ? {} : LOST)) // the last renewal is at 8 s
  await world.advance(500)
  // Its first GET reaches the server only after that renewal.
  const two = world.add('two', calls([{ requestMs: 8000 }]))
  await world.advance(23_000)
  expect([two.reported, world.overlaps]).toEqual([[], []])
  await world.advance(3000)
  expect([world.leaders(), world.overlaps]).toEqual([['two'], []])
})

test('every observed renewal restarts the wait for the Lease', async () => {
  world.add('one', ({ nth }) => (nth > 2 ? { requestMs: 1500, responseMs: 1500 } : {}))
  const two = world.add('two')
  await world.advance(120_000)
  expect([world.leaders(), two.reported, world.overlaps]).toEqual([['one'], [], []])
})

test('leadership without responses to renewals ends when the last renewal expires', async () => {
  const one = world.add('one', calls([{}, {}, {}], { responseMs: Infinity }))
  await world.advance(11_900)
  expect([one.reported, world.leaders(), await one.gauge()]).toEqual([['won 0'], ['one'], 1])
  await world.advance(100)
  expect([one.reported, world.leaders()]).toEqual([['won 0', 'lost 12000'], []])
  expect(await one.gauge()).toBe(0)
})

test('a candidate whose calls exceed the renew deadline does not become leader', async () => {
  const one = world.add('one', calls([{ responseMs: 6000 }, { responseMs: 6000 }]))
  await world.advance(13_000)
  expect([one.reported, world.leaders(), world.spec().holderIdentity]).toEqual([[], [], 'one'])
  await world.advance(1200)
  expect([one.reported, world.leaders()]).toEqual([['won 14200'], ['one']])
})

test('a renewal that arrives after another acquired the Lease changes nothing', async () => {
  const one = world.add('one', calls([{}, {}, { requestMs: 20_000 }], LOST))
  const two = world.add('two')
  await world.advance(21_900)
  expect(world.spec().holderIdentity).toBe('two')
  await world.advance(10_000)
  expect([world.spec().holderIdentity, world.overlaps]).toEqual(['two', []])
  expect([one.reported.at(-1), two.reported.length]).toEqual(['lost 10000', 1])
})

test('a leader keeps leading if a renewal is applied but returns 500', async () => {
  const one = world.add('one', calls([{}, {}, { failsWith: 500 }]))
  await world.advance(30_000)
  expect([one.reported, world.leaders(), one.warnings]).toEqual([
    ['won 0'],
    ['one'],
    ['failed to renew the Lease'],
  ])
})

test('a leader that observes another holder stops leading immediately', async () => {
  const one = world.add('one')
  await world.advance(1000)
  world.write({ holderIdentity: 'two', leaseDurationSeconds: 15 })
  await world.advance(3000) // a conflict, then a GET
  expect([one.reported, world.leaders(), await one.gauge()]).toEqual([
    ['won 0', 'lost 4000'],
    [],
    0,
  ])
})

test('a leader past its renew deadline sends nothing', async () => {
  const one = world.add('one', undefined, {
    leaseDurationMs: 3000,
    renewDeadlineMs: 2000,
    retryPeriodMs: 2000,
  })
  await world.advance(2000)
  expect([one.reported, one.calls.length]).toEqual([['won 0', 'lost 2000'], 2])
})

test('of four candidates one creates the Lease; the others log no warning', async () => {
  const all = ['a', 'b', 'c', 'd'].map((name) => world.add(name, () => ({ responseMs: 50 })))
  await world.advance(10_000)
  expect([world.leaders().length, world.overlaps]).toEqual([1, []])
  expect(all.flatMap(({ warnings }) => warnings)).toEqual([])
})

test('a renewal creates a deleted Lease', async () => {
  const one = world.add('one', ({ nth }) => (nth === 4 ? { requestMs: 100 } : {}))
  const two = world.add('two')
  await world.advance(4050) // the second renewal is in flight
  world.remove()
  await world.advance(20_000)
  expect([world.leaders(), world.spec().holderIdentity, two.reported]).toEqual([['one'], 'one', []])
  expect([...one.warnings, ...two.warnings]).toEqual([])
})

test('a deleted Lease is created by the next candidate that reads it', async () => {
  const one = world.add('one')
  const two = world.add('two')
  await world.advance(4050)
  one.stop()
  world.remove()
  await world.advance(350)
  expect([world.spec().holderIdentity, two.reported]).toEqual(['two', ['won 4400']])
})

test.each([
  [30, 30_800],
  [11, 11_000], // at the exact boundary
  [1, 2200],
  [undefined, 2200], // without a duration it is free at the second GET
])('a Lease of %s s that is not renewed is acquired after %i ms', async (seconds, acquiredMs) => {
  world.write({ holderIdentity: 'other', leaseDurationSeconds: seconds })
  const one = world.add('one')
  await world.advance(acquiredMs - 100)
  expect([one.reported, world.spec().holderIdentity]).toEqual([[], 'other'])
  await world.advance(100)
  expect(one.reported).toEqual([`won ${acquiredMs}`])
})

test('the Lease has the time of its acquisition and the number of its transitions', async () => {
  const one = world.add('one')
  await world.advance(4000) // two renewals
  const acquired = { acquireTime: '1970-01-01T00:00:00.000000Z', leaseTransitions: 0 }
  expect(world.spec()).toMatchObject({ ...acquired, renewTime: '1970-01-01T00:00:04.000000Z' })
  one.stop()
  world.add('two')
  await world.advance(20_000)
  expect(world.spec()).toMatchObject({ holderIdentity: 'two', leaseTransitions: 1 })
  const { acquireTime } = world.spec() as { acquireTime?: string }
  await world.advance(4000)
  expect(world.spec()).toMatchObject({ holderIdentity: 'two', acquireTime, leaseTransitions: 1 })
  expect(acquireTime).not.toBe(acquired.acquireTime)
})

test('a candidate that cannot read the Lease does not create it', async () => {
  const one = world.add('one', calls([{ failsWith: 500 }]))
  await world.advance(100)
  expect([one.calls.map(({ method }) => method), one.reported]).toEqual([['GET'], []])
  expect(one.warnings).toEqual(['failed to acquire the Lease'])
})

test('a fractional duration is rounded up to whole seconds', async () => {
  world.add('one', calls([]), { leaseDurationMs: 1500, renewDeadlineMs: 1200, retryPeriodMs: 200 })
  await world.advance(0)
  expect(world.spec().leaseDurationSeconds).toBe(2)
})

const delayMs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 12_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(20_000, Infinity) },
)
const delays: fc.Arbitrary<Delays> = fc.record(
  { requestMs: delayMs, responseMs: delayMs, failsWith: fc.constantFrom(500, 503) },
  { requiredKeys: ['requestMs', 'responseMs'] },
)

test('two candidates never lead concurrently, and one leads once the server recovers', async () => {
  const given = fc.record({
    slow: fc.array(delays, { minLength: 1, maxLength: 60 }),
    stops: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }),
    wallSteps: fc.array(fc.integer({ min: -4e3, max: 4e3 }), { minLength: 1, maxLength: 9 }),
  })
  await fc.assert(
    fc.asyncProperty(given, async ({ slow, stops, wallSteps }) => {
      world = new SlowLeases()
      let isHealthy = false
      let calls = 0
      let wallReads = 0
      // Renewals have different times: a write without a change keeps the Lease's version.
      world.wallMs = () => {
        const stepMs = 1000 * (wallSteps[wallReads % wallSteps.length] ?? 0)
        return 1e9 + stepMs + wallReads++
      }
      const delaysOf = () => (isHealthy ? {} : (slow[calls++ % slow.length] ?? {}))
      let names = 0
      const open = () => world.add(`c${++names}`, delaysOf)
      let candidates: Candidate[] = [open(), open(), open()]
      for (let second = 1; second <= 110; second++) {
        isHealthy = second > 60
        await world.advance(1000)
        if (stops.includes(second)) {
          const leading = candidates.find(({ election }) => election.isLeading())
          leading?.stop()
          void leading?.election.release()
        }
        // A candidate that stopped or lost leadership restarts as another process.
        candidates = candidates.map((one) => (one.reported.length > 1 ? open() : one))
      }
      expect(world.overlaps).toEqual([])
      expect(world.leaders()).toEqual([world.spec().holderIdentity])
    }),
    { numRuns: 60 },
  )
})
