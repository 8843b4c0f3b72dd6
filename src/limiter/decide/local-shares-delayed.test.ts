// Hits that this process has admitted while the store is slow: pending until the store reports that
// it has counted them, or until their window is over.
import { describe, expect, test } from '@jest/globals'
import { START_US } from '../../../test/kit/ratelimit/decide-limits.ts'
import type { Algorithm, Decision } from '../../limits/algorithm.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createLocalShares } from './local-shares.ts'

const SECOND_US = 1_000_000

/** A limit of 10 hits per second, unless it is changed. */
function hitsOf(hits: number, of: { requests?: number; key?: string; algorithm?: Algorithm } = {}) {
  const { requests = 10, key = 'k', algorithm = fixedWindow } = of
  const burst = algorithm.takesBurst ? 3 * requests : requests
  const limit = { requests, windowUs: SECOND_US, burst, denyConsumes: false }
  const update: CounterUpdate = { key, algorithm, limit, hits, veto: 'alone', isPerSecond: true }
  return update
}

/** What the store reports. */
const reported = (remaining: number, resetUs = SECOND_US): Decision => ({
  ...{ admitted: true, remaining, over: 0, resetUs, retryAfterUs: 0 },
  ...{ next: undefined, expiresInUs: 0 },
})

/** The shares of one process; the store is slow until `state.isUnresponsive` is set. */
function openShares(replicas = 1) {
  const clock = { nowUs: START_US }
  const state = { isUnresponsive: false }
  const nowUs = () => clock.nowUs
  const shares = createLocalShares({
    replicas,
    local: createMemoryCounterStore({ nowUs }),
    pending: createMemoryCounterStore({ nowUs }),
    isUnresponsive: () => state.isUnresponsive,
    nowUs,
  })
  /** The number of single hits that are admitted now. */
  const admitted = (of: Parameters<typeof hitsOf>[1] = {}) => {
    let count = 0
    while (count < 1000 && shares.decide([hitsOf(1, of)], undefined)[0]?.admitted === true) count++
    return count
  }
  const settle = () => new Promise(setImmediate)
  return { shares, clock, state, admitted, settle }
}

describe('hits that were admitted locally', () => {
  test('are not subtracted from a report that includes them', async () => {
    const { shares, admitted, settle } = openShares()
    const [decision] = shares.decide([hitsOf(3)], Promise.resolve([reported(4)]))
    expect(decision).toMatchObject({ admitted: true, remaining: 7 })
    await settle()
    expect(admitted()).toBe(4)
  })

  test('are subtracted from later reports if their own call failed', async () => {
    const { shares, admitted, settle } = openShares()
    shares.decide([hitsOf(3)], Promise.resolve(undefined))
    await settle()
    shares.record([hitsOf(1)], [reported(10)])
    expect(admitted()).toBe(7)
  })

  test('do not reduce the pending hits of a later window if they are confirmed then', async () => {
    const { shares, clock, admitted, settle } = openShares()
    const first = Promise.withResolvers<readonly Decision[]>()
    shares.decide([hitsOf(3)], first.promise)
    clock.nowUs += SECOND_US // START_US is the start of a window
    shares.decide([hitsOf(2)], undefined)
    first.resolve([reported(10)])
    await settle()
    expect(admitted()).toBe(10 - 2)
  })

  test('are not subtracted after their window', () => {
    const { shares, clock, admitted } = openShares()
    shares.record([hitsOf(1)], [reported(3)])
    shares.decide([hitsOf(3)], undefined)
    clock.nowUs += SECOND_US // the reset of the report
    expect(admitted()).toBe(10)
  })

  test('are not reduced by a refund, which the store may not have counted either', () => {
    const { shares, admitted } = openShares()
    shares.decide([hitsOf(3)], undefined)
    shares.decide([hitsOf(-1)], undefined)
    shares.record([hitsOf(1)], [reported(10)])
    expect(admitted()).toBe(7)
  })

  test('drain after the hits of the report', () => {
    const { shares, clock, admitted } = openShares()
    const bucket = { algorithm: tokenBucket } // of 30 hits
    shares.record([hitsOf(1, bucket)], [reported(25, SECOND_US / 2)])
    clock.nowUs += SECOND_US / 20
    expect(shares.decide([hitsOf(20, bucket)], undefined)).toMatchObject([{ admitted: true }])
    clock.nowUs = START_US + SECOND_US
    // In the second half of the second, 5 of the 20 hits have drained.
    expect(admitted(bucket)).toBe(30 - (20 - 5))
  })
})

test('hits of a denied call are not pending', () => {
  const { shares, admitted } = openShares()
  const exhausted = hitsOf(1, { key: 'none', requests: 0 })
  const decisions = shares.decide([exhausted, hitsOf(4)], undefined)
  expect(decisions).toMatchObject([{ admitted: false }, { admitted: true }])
  shares.record([hitsOf(1)], [reported(10)])
  expect(admitted()).toBe(10)
})

test('hits beyond the share of a rule in shadow mode are not pending', () => {
  const { shares, state, admitted } = openShares(3)
  state.isUnresponsive = true
  const watched: CounterUpdate = { ...hitsOf(5), veto: 'never' }
  expect(shares.decide([watched], undefined)).toMatchObject([{ admitted: false }])
  shares.record([watched], [reported(10)])
  expect(admitted()).toBe(3)
})

describe('while the store is slow', () => {
  test('several processes admit a fifth of the remainder, in each window', () => {
    const { admitted, clock } = openShares(3)
    for (let second = 0; second < 3; second++) {
      expect(admitted({ requests: 102 })).toBe(6)
      clock.nowUs += SECOND_US
    }
  })

  test('each of several processes admits at least one hit of a remainder', () => {
    const { shares, admitted } = openShares(3)
    shares.record([hitsOf(1)], [reported(2)])
    expect(admitted()).toBe(1)
  })

  test('a single process admits the whole remainder', () => {
    const { shares, admitted } = openShares()
    shares.record([hitsOf(1)], [reported(9)])
    expect(admitted()).toBe(9)
  })

  test('a process admits its whole share once the store stops responding', () => {
    const { admitted, state } = openShares(3)
    expect(admitted({ requests: 102 })).toBe(6)
    state.isUnresponsive = true
    expect(admitted({ requests: 102 })).toBe(34 - 6)
    state.isUnresponsive = false
    expect(admitted({ requests: 102 })).toBe(0)
  })
})

test('a reset discards the pending hits and the report', async () => {
  const { shares, state, admitted } = openShares()
  shares.record([hitsOf(1)], [reported(4)])
  expect(admitted()).toBe(4)
  await shares.reset([hitsOf(1)])
  state.isUnresponsive = true
  expect(admitted()).toBe(10)
})
