// The abuse budget is bounded, refills over time, and is refunded by successful calls.
import { expect, test } from '@jest/globals'
import { AbuseBudget } from './abuse-budget.ts'

const spentAt = (budget: AbuseBudget, nowMs: number) => {
  let count = 0
  while (budget.spend(nowMs)) count += 1
  return count
}

test('the budget allows a burst of 10,000, and then 1,000 per second', () => {
  const budget = new AbuseBudget(0)
  expect(spentAt(budget, 0)).toBe(10_000)
  expect(spentAt(budget, 0)).toBe(0)
  expect(spentAt(budget, 2000)).toBeCloseTo(2000, -1)
  expect(spentAt(budget, 1e9)).toBeCloseTo(10_000, -1)
})

test('a connection that was idle has one burst, not two', () => {
  const budget = new AbuseBudget(0)
  expect(spentAt(budget, 60_000)).toBe(10_000)
  expect(spentAt(budget, 60_000)).toBe(0)
})

test('a successful call refunds three units', () => {
  const budget = new AbuseBudget(0)
  let spent = 0
  for (let i = 0; i < 100_000; i += 1) {
    budget.refund()
    for (let each = 0; each < 3; each += 1) spent += budget.spend(0) ? 1 : 0
  }
  expect(spent).toBe(300_000)
})

test('an amount is spent as a whole, and what exceeds the budget delays its refill', () => {
  const budget = new AbuseBudget(1000)
  expect([budget.spend(1000, 9999), budget.spend(1000, 1), budget.spend(1000, 0)]).toEqual([
    ...[true, true],
    true,
  ])
  expect(budget.spend(1000, 500)).toBe(false)
  expect([budget.spend(1499, 0), budget.spend(1500, 0)]).toEqual([false, true])
  expect([budget.spend(1600, 100), budget.spend(1600, 1)]).toEqual([true, false])
})

test('a refund does not increase the budget beyond one burst', () => {
  const budget = new AbuseBudget(0)
  for (let i = 0; i < 100; i += 1) budget.refund()
  expect(spentAt(budget, 0)).toBe(10_000)
  budget.refund()
  expect([budget.spend(0, 2), budget.spend(0, 1)]).toEqual([true, false])
})
