// Delays after failures.
import { expect, test } from '@jest/globals'
import { createBackOff, WATCH_BACK_OFF } from './back-off.ts'

test('delays grow from 0.8 to 30 s and reset after two minutes without a failure', () => {
  let nowMs = 0
  const backOff = createBackOff(WATCH_BACK_OFF, {
    scheduler: { nowMs: () => nowMs },
    random: () => 0,
  })
  const delays = Array.from({ length: 8 }, () => {
    const delayMs = backOff.nextMs()
    nowMs += delayMs
    return delayMs
  })
  expect(delays).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  nowMs += 119_000
  expect(backOff.nextMs()).toBe(30_000)
  nowMs += 30_000 + 121_000
  expect(backOff.nextMs()).toBe(800)
})

test('jitter adds up to 100 % of the delay', () => {
  const backOff = createBackOff(WATCH_BACK_OFF, { scheduler: { nowMs: () => 0 }, random: () => 1 })
  expect([backOff.nextMs(), backOff.nextMs()]).toEqual([1600, 3200])
})

test('no delay exceeds the bound, for any jitter', () => {
  const backOff = createBackOff(WATCH_BACK_OFF, { scheduler: { nowMs: () => 0 }, random: () => 1 })
  const delays = Array.from({ length: 2000 }, () => backOff.nextMs())
  expect(delays.slice(3, 6)).toEqual([12_800, 25_600, 30_000])
  expect(Math.max(...delays)).toBe(30_000)
})

test('delays reset only after more than the reset period without a failure', () => {
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
