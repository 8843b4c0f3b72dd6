// The value of content-length: which values are valid, and several fields (RFC 9113 §8.1.1).
import { expect, test } from '@jest/globals'
import { readContentLength } from './content-length.ts'

const field = (name: string, value: string) => ({ name, value, bytes: 0, isValid: true })
const lengthOf = (...values: readonly string[]) =>
  readContentLength([
    field('content-type', '5'),
    ...values.map((value) => field('content-length', value)),
    field('x-length', '6'),
  ])

test('returns undefined without the field', () => {
  expect(lengthOf()).toBeUndefined()
  expect(readContentLength([])).toBeUndefined()
})

test('returns the number of bytes, of at most 15 digits', () => {
  expect(lengthOf('0')).toBe(0)
  expect(lengthOf('9'.repeat(15))).toBe(999_999_999_999_999)
  expect(lengthOf('1'.repeat(16))).toBeNaN()
})

test.each(['', '+7', '-7', '7.0', '0x7', ' 7', '7 ', '7,7'])('returns NaN for %j', (value) => {
  expect(lengthOf(value)).toBeNaN()
})

test('returns NaN if several fields differ or one is invalid', () => {
  expect(lengthOf('7', '7', '7')).toBe(7)
  expect(lengthOf('7', '8')).toBeNaN()
  expect(lengthOf('x', '7')).toBeNaN()
  expect(lengthOf('7', '8', '8')).toBeNaN()
})
