// A limiter that has disconnected recently still counts, so that a quick reconnect changes no
// number; one that stops does not count. Explores random orders; a failure prints the seed.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  createLimiterCount,
  LIMITER_ABSENCE_MS as ABSENT_MS,
  LIMITER_RECONNECT_MS as MS,
} from './limiter-count.ts'

const versions = (...all: readonly number[]) => all.map((version) => ({ version, rejected: 0 }))

test('a limiter that disconnects counts until it could have reconnected', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1), 0)
  expect([count.total(0), count.nextChangeMs(0)]).toEqual([2, undefined])
  count.observe(versions(1), 1000)
  expect(count.total(1000)).toBe(2)
  count.observe(versions(1), 2000)
  expect([count.total(999 + MS), count.total(1000 + MS)]).toEqual([2, 1])
  expect(count.nextChangeMs(50_000)).toBe(1000 + MS)
})

test('a limiter that reconnects is not counted twice', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1), 0)
  count.observe(versions(1), 1000)
  count.observe(versions(1, 1), 2000)
  expect([count.total(2000), count.active(1, 2000)]).toEqual([2, 2])
})

test('the total decreases in steps', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1, 1), 0)
  count.observe(versions(1, 1), 1000)
  count.observe([], 2000)
  const totals = [2000, 1000 + MS, 2000 + MS].map((ms) => count.total(ms))
  expect(totals).toEqual([3, 2, 0])
})

test('a limiter that disconnects is active for a while, with the version that it had', () => {
  const count = createLimiterCount()
  count.observe(versions(5, 3), 0)
  count.observe(versions(5), 60_000)
  const activeAt = (ms: number) => [3, 4].map((since) => count.active(since, ms))
  expect(activeAt(60_000 + ABSENT_MS - 1)).toEqual([2, 1])
  const endMs = count.nextChangeMs(60_000) ?? 0
  expect(endMs).toBeLessThanOrEqual(60_000 + ABSENT_MS + 1000)
  expect(activeAt(endMs)).toEqual([1, 1])
})

test('the order of the limiters has no effect', () => {
  const count = createLimiterCount()
  count.observe(versions(3, 5), 0)
  count.observe(versions(5), 1000)
  expect([3, 4].map((since) => count.active(since, 1000))).toEqual([2, 1])
})

test('limiters that disconnect one after the other are all active for a while', () => {
  const count = createLimiterCount()
  count.observe(versions(5, 5, 5), 0)
  count.observe(versions(5, 5), 100)
  count.observe(versions(5), 200)
  count.observe([], 300)
  expect([count.active(5, 300), count.total(300)]).toEqual([3, 3])
})

test('a limiter that reconnects without rules every few seconds stays active', () => {
  const count = createLimiterCount()
  const active = new Set<number>()
  for (let ms = 0; ms < 600_000; ms += 500) {
    count.observe([versions(7, 7), versions(7), versions(7, 0)][(ms / 500) % 3] ?? [], ms)
    active.add(count.active(7, ms))
    expect(count.active(7, ms)).toBeLessThanOrEqual(count.total(ms))
  }
  expect([...active]).toEqual([2])
})

test('the next change is when the first of the earlier numbers no longer counts', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1), 0)
  count.observe(versions(1), 0)
  count.observe(versions(1, 1), 3000)
  count.observe(versions(1), 5000)
  const changes: number[] = []
  for (let ms = 5000; changes.length < 4; ms = changes.at(-1) ?? 0)
    changes.push(count.nextChangeMs(ms) ?? Infinity)
  const activeEnds = [0, 5000].map((ms) => ms + ABSENT_MS + 1000)
  expect(changes).toEqual([...activeEnds, 5000 + MS, Infinity])
})

test('a limiter that stops does not count', () => {
  const count = createLimiterCount()
  count.observe(versions(5, 4, 3), 0)
  count.leave(4)
  const numbers = () => [count.total(0), count.active(4, 0), count.active(1, 0)]
  expect(numbers()).toEqual([2, 1, 2])
  count.observe(versions(5, 3), 0)
  expect(numbers()).toEqual([2, 1, 2])
  expect(count.nextChangeMs(0)).toBeUndefined()
})

test('a stop of a limiter that is not connected changes nothing', () => {
  const count = createLimiterCount()
  count.observe(versions(5, 4), 0)
  count.leave(3)
  expect([count.total(0), count.active(4, 0)]).toEqual([2, 2])
})

test('if a limiter stops, another that may reconnect still counts', () => {
  const count = createLimiterCount()
  count.observe(versions(1, 1, 1), 0)
  count.observe(versions(1, 1), 1000)
  count.leave(1)
  count.observe(versions(1), 2000)
  expect([count.total(2000), count.active(1, 2000)]).toEqual([2, 2])
  expect(count.total(1000 + MS)).toBe(1)
})

const rejections = (...all: readonly (readonly [version: number, rejected: number])[]) =>
  all.map(([version, rejected]) => ({ version, rejected }))

test('a limiter that rejected rules and disconnects still rejects the versions it lacks', () => {
  const count = createLimiterCount()
  count.observe(rejections([4, 0], [2, 4]), 0)
  count.observe(versions(4), 1000)
  const isRejectingAt = (ms: number) => [2, 3, 4].map((since) => count.isRejecting(since, ms))
  expect(isRejectingAt(MS - 1)).toEqual([false, true, true])
  expect(isRejectingAt(MS)).toEqual([false, false, false])
})

test('a version after the rejected one is not rejected', () => {
  const count = createLimiterCount()
  count.observe(rejections([1, 2], [1, 2]), 0)
  expect([2, 3].map((since) => count.isRejecting(since, 0))).toEqual([true, false])
  count.observe(rejections([1, 3], [1, 2]), 0)
  expect([2, 3, 4].map((since) => count.isRejecting(since, 0))).toEqual([true, true, false])
})

test('several rejections count together until the last one ends', () => {
  const count = createLimiterCount()
  count.observe(rejections([1, 4]), 0)
  count.observe(rejections([2, 3]), 1000)
  expect([2, 4].map((since) => count.isRejecting(since, MS + 999))).toEqual([true, true])
})

test('a rejection after the end of an earlier one counts alone', () => {
  const count = createLimiterCount()
  count.observe(rejections([1, 9]), 0)
  count.observe(rejections([5, 6]), MS)
  expect([5, 6, 7].map((since) => count.isRejecting(since, MS))).toEqual([false, true, false])
})

test('a rejection ends when all limiters have accepted the version or a newer one', () => {
  const count = createLimiterCount()
  count.observe(rejections([2, 0], [1, 2]), 0)
  count.observe(versions(2, 1), 1000)
  expect(count.isRejecting(2, 1000)).toBe(true)
  count.observe(versions(3, 2), 2000)
  count.observe(versions(3, 0), 60_000)
  expect(count.isRejecting(2, 60_000)).toBe(false)
})

interface Limiter {
  version: number
  /** When it disconnected; -Infinity: it is connected. */
  leftMs: number
}

test('only limiters that are connected or may reconnect count', () => {
  const kinds = ['start', 'disconnect', 'reconnect', 'stop', 'update', 'wait'] as const
  const step = fc.tuple(fc.constantFrom(...kinds), fc.nat(), fc.constantFrom(500, 6000, 40_000))
  let stops = 0
  const run = fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
    const count = createLimiterCount()
    const limiters = new Set<Limiter>()
    const connected = () => [...limiters].filter(({ leftMs }) => leftMs === -Infinity)
    let [nowMs, newest] = [0, 1]
    for (const [kind, at, ms] of steps) {
      if (kind === 'wait') nowMs += ms
      if (kind === 'start') limiters.add({ version: newest, leftMs: -Infinity })
      const isAbsent = kind === 'reconnect'
      const all = [...limiters].filter(({ leftMs }) => leftMs > -Infinity === isAbsent)
      const chosen = all[at % Math.max(1, all.length)]
      if (chosen !== undefined && kind === 'update') chosen.version = ++newest
      if (chosen !== undefined && kind === 'disconnect') chosen.leftMs = nowMs
      if (chosen !== undefined && isAbsent) Object.assign(chosen, { version: 0, leftMs: -Infinity })
      if (chosen !== undefined && kind === 'stop') {
        count.leave(chosen.version)
        limiters.delete(chosen)
        stops++
      }
      count.observe(versions(...connected().map(({ version }) => version)), nowMs)
      for (const limiter of limiters)
        if (limiter.leftMs > -Infinity && nowMs - limiter.leftMs >= MS) limiters.delete(limiter)
      const total = count.total(nowMs)
      expect(total).toBeGreaterThanOrEqual(connected().length)
      expect(total).toBeLessThanOrEqual(limiters.size)
      expect(count.active(0, nowMs)).toBeLessThanOrEqual(total)
    }
  })
  fc.assert(run, { numRuns: 200 })
  expect(stops).toBeGreaterThan(200)
})
