// Patience has a bound, comes back with time, and is made up for by calls.
import { expect, test } from '@jest/globals'
import { Patience } from './patience.ts'

const borneAt = (patience: Patience, nowMs: number) => {
  let count = 0
  while (patience.bear(nowMs)) count += 1
  return count
}

test('10,000 are borne at once, and 1,000 each second from then on', () => {
  const patience = new Patience(0)
  expect(borneAt(patience, 0)).toBe(10_000)
  expect(borneAt(patience, 0)).toBe(0)
  expect(borneAt(patience, 2000)).toBeCloseTo(2000, -1)
  expect(borneAt(patience, 1e9)).toBeCloseTo(10_000, -1)
})

test('an answered call makes up for three', () => {
  const patience = new Patience(0)
  let borne = 0
  for (let i = 0; i < 100_000; i += 1) {
    patience.makeUp()
    for (let each = 0; each < 3; each += 1) borne += patience.bear(0) ? 1 : 0
  }
  expect(borne).toBe(300_000)
})
