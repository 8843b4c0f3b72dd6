// The lag of the event loop when the loop is blocked and when the process is frozen.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { TICK_MS, TICKS_MAX, watchLoopLag } from './loop-lag.ts'

const STALL_MS = 10.5 * TICK_MS
const HOUR_MS = 3_600_000

/** Blocks the event loop. */
function stall(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs;);
}

test('a stall counts once for each tick that it delayed, with the delay of that tick', async () => {
  const seen: number[] = []
  const stop = watchLoopLag({ nowMs: () => performance.now(), observe: (lag) => seen.push(lag) })
  await sleep(2 * TICK_MS)
  const before = seen.length
  stall(STALL_MS)
  await sleep(TICK_MS)
  stop()
  const delayed = seen.slice(before).filter((lag) => lag >= TICK_MS / 1000)
  expect(delayed.length).toBeGreaterThanOrEqual(STALL_MS / TICK_MS - 2)
  expect(delayed[0]).toBeGreaterThanOrEqual((STALL_MS - TICK_MS) / 1000)
  const steps = delayed.slice(1).map((lag, i) => (delayed[i] ?? 0) - lag)
  for (const step of steps.slice(0, 5)) expect(step).toBeCloseTo(TICK_MS / 1000, 6)
})

test('after an hour in a frozen process, one minute is counted', async () => {
  const seen: number[] = []
  let frozenMs = 0
  const nowMs = () => performance.now() + frozenMs
  const stop = watchLoopLag({ nowMs, observe: (lag) => seen.push(lag) })
  frozenMs = HOUR_MS
  await sleep(2 * TICK_MS)
  stop()
  const counted = seen.filter((lag) => lag > 1)
  expect(counted.length).toBeLessThanOrEqual(TICKS_MAX)
  expect(counted.length).toBeGreaterThan(TICKS_MAX - 1000 / TICK_MS - 2)
  expect(Math.max(...seen)).toBeLessThanOrEqual((TICKS_MAX * TICK_MS) / 1000)
})

test('nothing is measured after stop', async () => {
  const seen: number[] = []
  const stop = watchLoopLag({ nowMs: () => performance.now(), observe: (lag) => seen.push(lag) })
  await sleep(3 * TICK_MS)
  stop()
  const { length } = seen
  expect(length).toBeGreaterThan(0)
  await sleep(3 * TICK_MS)
  expect(seen).toHaveLength(length)
})
