// Stops of candidates for a Lease with a slow API server: what they report and release, so that
// another candidate need not wait until the Lease expires.
import { beforeEach, expect, test } from '@jest/globals'
import { calls, type Delays, SlowLeases } from '../../test/kit/kube/slow-leases.ts'

const LOST: Delays = { requestMs: Infinity }
let world: SlowLeases

beforeEach(() => {
  world = new SlowLeases()
})

test('a leader that is stopped while it cannot renew reports stopped, not lost', async () => {
  const slowRead = [{}, {}, { failsWith: 500 }, { responseMs: 5000 }]
  const one = world.add('one', calls(slowRead, { responseMs: Infinity }))
  await world.advance(12_000) // leadership was lost at 10 s
  one.stop()
  await world.advance(0)
  expect(one.reported).toEqual(['won 0', 'stopped 12000'])
})

test('a leader that is stopped between renewals sends nothing', async () => {
  const one = world.add('one')
  await world.advance(1000)
  one.stop()
  await world.advance(5000)
  expect([one.reported, one.calls.length]).toEqual([['won 0', 'stopped 1000'], 2])
})

test('a candidate that has written nothing releases nothing', async () => {
  world.write({ holderIdentity: 'other', leaseDurationSeconds: 15 })
  const one = world.add('one')
  await world.advance(100)
  one.stop()
  await world.advance(5000)
  expect([one.calls.length, one.election.isStuck()]).toEqual([1, false])
})

test('an election that was lost is not stuck', async () => {
  const one = world.add('one', calls([{}, {}], LOST))
  await world.advance(3_600_000)
  expect([one.reported.length, one.election.isStuck()]).toEqual([2, false])
})

test('a leader that releases stops leading before its request is sent', async () => {
  const one = world.add('one', ({ nth }) => (nth <= 2 ? {} : { responseMs: 900 }))
  await world.advance(100)
  const two = world.add('two', () => ({}))
  await world.advance(1850)
  one.stop()
  const released = one.election.release()
  expect(world.leaders()).toEqual([])
  await world.advance(800)
  expect([world.leaders(), world.overlaps]).toEqual([['two'], []])
  await world.advance(100)
  await released
  expect(two.reported).toEqual(['won 2300'])
})

test('a candidate that does not lead releases nothing', async () => {
  const one = world.add('one', calls([{}, {}], LOST))
  await world.advance(10_000)
  expect(one.reported).toEqual(['won 0', 'lost 10000'])
  const before = one.calls.length
  await one.election.release()
  expect([one.calls.length, world.spec().holderIdentity]).toEqual([before, 'one'])
})

test('a leader does not release a Lease that another holds', async () => {
  const one = world.add('one', ({ nth }) => (nth === 3 ? { requestMs: Infinity } : {}))
  await world.advance(2500) // a renewal is in flight
  world.write({ holderIdentity: 'two', leaseDurationSeconds: 15 })
  one.stop()
  await world.advance(0)
  const released = one.election.release()
  await world.advance(100)
  await released
  expect(world.spec()).toMatchObject({ holderIdentity: 'two', leaseDurationSeconds: 15 })
})

test('a stop releases the Lease, even if the renewal that it aborts is applied later', async () => {
  // The renewal is applied between the GET and the PUT of the release.
  const delayed = [{}, {}, { requestMs: 500 }, {}, { requestMs: 300 }]
  const one = world.add('one', calls(delayed))
  await world.advance(2300)
  one.stop()
  await world.advance(0)
  const released = one.election.release()
  await world.advance(300)
  await released
  expect([world.spec().holderIdentity, one.reported]).toEqual(['', ['won 0', 'stopped 2300']])
  const methods = one.calls.map(({ method }) => method)
  expect(methods).toEqual(['GET', 'POST', 'PUT', 'GET', 'PUT', 'GET', 'PUT'])
})

test('a release is tried twice, and each call has a deadline of 1 s', async () => {
  let labels = 0
  const contested = world.add('one', ({ method, nth }) => {
    if (method === 'PUT' && nth > 2) world.write({ acquireTime: String(labels++) })
    return {}
  })
  await world.advance(100)
  contested.stop()
  const released = contested.election.release()
  await world.advance(0)
  await released
  expect([contested.calls.length, contested.warnings.length]).toEqual([5, 1])
  world = new SlowLeases()
  const silent = world.add('one', calls([{}, {}], { responseMs: Infinity }))
  await world.advance(100)
  silent.stop()
  let isReleased = false
  void silent.election.release().then(() => (isReleased = true))
  await world.advance(900)
  expect(isReleased).toBe(false)
  await world.advance(100)
  expect([isReleased, silent.warnings.length]).toEqual([true, 1])
})

test('a released Lease is acquired for its whole duration', async () => {
  const one = world.add('one')
  await world.advance(100)
  one.stop()
  const released = one.election.release()
  await world.advance(100)
  await released
  expect(world.spec()).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 })
  world.add('two', calls([{}, {}], LOST)) // never renewed
  await world.advance(0)
  expect(world.spec()).toMatchObject({ holderIdentity: 'two', leaseDurationSeconds: 15 })
  const three = world.add('three')
  await world.advance(18_000)
  expect([three.reported.length, world.overlaps]).toEqual([1, []])
})

test('a stop that aborts an acquisition releases the Lease that it acquired', async () => {
  world.write({ holderIdentity: '' })
  const one = world.add('one', calls([{}, { responseMs: 1000 }]))
  await world.advance(300)
  expect(world.spec().holderIdentity).toBe('one')
  one.stop()
  await world.advance(100)
  expect([world.spec().holderIdentity, one.reported, one.warnings]).toEqual(['', [], []])
  expect(one.calls.map(({ method }) => method)).toEqual(['GET', 'PUT', 'GET', 'PUT'])
})

test('a stop only reads the Lease if the aborted write did not reach the server', async () => {
  const one = world.add('one', calls([{}, LOST]))
  await world.advance(300)
  one.stop()
  await world.advance(100)
  expect([one.calls.map(({ method }) => method), one.warnings]).toEqual([
    ['GET', 'POST', 'GET'],
    [],
  ])
})

test('a candidate that has not written stops without a call', async () => {
  world.write({ holderIdentity: 'other', leaseDurationSeconds: 15 })
  const one = world.add('one')
  await world.advance(1000)
  one.stop()
  await world.advance(100)
  expect(one.calls.map(({ method }) => method)).toEqual(['GET'])
})

test('an election that has stopped is not stuck', async () => {
  const one = world.add('one')
  await world.advance(1000)
  one.stop()
  await world.advance(61_000)
  expect([one.reported.at(-1), one.election.isStuck()]).toEqual(['stopped 1000', false])
})
