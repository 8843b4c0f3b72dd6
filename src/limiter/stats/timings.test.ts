// Durations of calls: the values kept, and their summary.
import { expect, test } from '@jest/globals'
import { Timings } from './timings.ts'

test('returns the times since a reading, oldest first', () => {
  const times = new Timings()
  expect(times.since(0)).toEqual({ values: [], total: 0 })
  for (const ms of [1, 2, 3]) times.observe(ms)
  expect(times.since(0)).toEqual({ values: [1, 2, 3], total: 3 })
  expect(times.since(2)).toEqual({ values: [3], total: 1 })
  expect(times.since(3)).toEqual({ values: [], total: 0 })
})

test('keeps the last 512 times, and counts all', () => {
  const times = new Timings()
  for (let ms = 1; ms <= 10_000; ms++) times.observe(ms)
  const { values, total } = times.since(1000)
  expect(total).toBe(9000)
  expect(values).toHaveLength(512)
  expect([values[0], values.at(-1)]).toEqual([9489, 10_000])
  expect(times.summary()).toMatchObject({ count: 10_000, mean: 5000.5, max: 10_000, p50: 9744 })
})

test('without observations the summary is zero', () => {
  expect(new Timings().summary()).toEqual({ count: 0, mean: 0, p50: 0, p99: 0, max: 0 })
})
