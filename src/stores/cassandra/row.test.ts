// Column values of rows: a value of another type is a defect.
import { AssertionError } from 'node:assert'
import { expect, test } from '@jest/globals'
import { integerOf, stringOf, timeMsOf, uuidOf, wasApplied } from './row.ts'

const uuid = { toString: () => 'd9428888-122b-11e1-b85c-61cd3cbb3210' }

test('an LWT was applied only if its row states it', () => {
  expect(wasApplied({ '[applied]': true })).toBe(true)
  for (const row of [{ '[applied]': false }, { '[applied]': 'true' }, {}, undefined])
    expect(wasApplied(row)).toBe(false)
})

test('values of the column types are converted', () => {
  expect(stringOf('')).toBe('')
  expect(uuidOf(uuid)).toBe('d9428888-122b-11e1-b85c-61cd3cbb3210')
  expect([integerOf(7), integerOf(7n), integerOf(-(2n ** 53n) + 1n)]).toEqual([
    ...[7, 7, -9_007_199_254_740_991],
  ])
  expect(timeMsOf(new Date(5))).toBe(5)
})

test('an absent uuid or time is null', () => {
  expect([uuidOf(null), uuidOf(undefined)]).toEqual([null, null])
  expect([timeMsOf(null), timeMsOf(undefined)]).toEqual([null, null])
})

test.each([
  ['a string', stringOf, [5, null, undefined, uuid]],
  ['a uuid', uuidOf, [5, uuid.toString()]],
  ['an integer', integerOf, ['5', null, undefined, 1.5, 2n ** 53n]],
  ['a time', timeMsOf, [5, '1970-01-01', uuid]],
])('a value of another type is not %s', (_, convert, values: readonly unknown[]) => {
  for (const value of values) expect(() => convert(value)).toThrow(AssertionError)
})
