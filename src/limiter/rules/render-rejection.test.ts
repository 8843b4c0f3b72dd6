// The reason of a rejection is bounded, and always contains the first fault.
import { expect, test } from '@jest/globals'
import { renderRejection } from './render-rejection.ts'

const fault = (message: string) => ({ file: 'the version', line: 1, path: '', message })

test('a fault above 4 KiB is truncated between two characters', () => {
  const faults = [fault('é'.repeat(5000)), fault('second')]
  const reason = renderRejection(faults)
  expect(reason).toMatch(/^the version: é{2000,}\.\.\.\nand 1 more$/)
  expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(4096 + 20)
  expect(renderRejection(faults.slice(0, 1))).toMatch(/é\.\.\.$/)
})

test.each([
  ['one fault', [4082], 4095],
  ['one fault, one byte longer', [4083], 4096],
  ['two faults', [2000, 2068], 4095],
  ['two faults, of which the second is one byte too long', [2000, 2069], 2013 + 11],
])('%s: lines with their ends have at most 4 KiB', (_, lengths, bytes) => {
  const reason = renderRejection(lengths.map((length) => fault('x'.repeat(length))))
  expect(Buffer.byteLength(reason)).toBe(bytes)
})

test('faults beyond 4 KiB are counted', () => {
  const reason = renderRejection(Array.from({ length: 10 }, () => fault('x'.repeat(1000))))
  expect(reason.split('\n')).toHaveLength(5)
  expect(reason).toMatch(/\nand 6 more$/)
})

test('faults that are not listed are counted', () => {
  const listed = Array.from({ length: 9 }, () => fault('x'.repeat(1000)))
  const reason = renderRejection([...listed, { ...fault('not listed: 500'), omittedCount: 500 }])
  expect(reason).toMatch(/\nand 505 more$/)
})
