// The waits after failures.
import { expect, test } from '@jest/globals'
import { createBackOff, WATCH_BACK_OFF } from './back-off.ts'

test('waits grow from 0.8 to 30 s, and begin anew after two minutes without a failure', () => {
  let nowMs = 0
  const backOff = createBackOff(WATCH_BACK_OFF, {
    scheduler: { nowMs: () => nowMs },
    random: () => 0,
  })
  const waits = Array.from({ length: 8 }, () => {
    const waitMs = backOff.nextMs()
    nowMs += waitMs
    return waitMs
  })
  expect(waits).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  nowMs += 119_000
  expect(backOff.nextMs()).toBe(30_000)
  nowMs += 30_000 + 121_000
  expect(backOff.nextMs()).toBe(800)
})

test('jitter adds up to the wait again', () => {
  const backOff = createBackOff(WATCH_BACK_OFF, { scheduler: { nowMs: () => 0 }, random: () => 1 })
  expect([backOff.nextMs(), backOff.nextMs()]).toEqual([1600, 3200])
})

test('no wait is longer than the bound, however wide the jitter', () => {
  const backOff = createBackOff(WATCH_BACK_OFF, { scheduler: { nowMs: () => 0 }, random: () => 1 })
  const waits = Array.from({ length: 2000 }, () => backOff.nextMs())
  expect(waits.slice(3, 6)).toEqual([12_800, 25_600, 30_000])
  expect(Math.max(...waits)).toBe(30_000)
})

test('waits start again only after more than the time without a failure', () => {
  let nowMs = 0
  const backOff = createBackOff(WATCH_BACK_OFF, {
    scheduler: { nowMs: () => nowMs },
    random: () => 0,
  })
  expect(backOff.nextMs()).toBe(800)
  nowMs += 800 + 120_000
  expect(backOff.nextMs()).toBe(1600)
  nowMs += 1600 + 120_001
  expect(backOff.nextMs()).toBe(800)
})
