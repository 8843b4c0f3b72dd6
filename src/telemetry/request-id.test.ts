// Request ids: the edge's where it is fit for a log line, else one of ours.
import { expect, test } from '@jest/globals'
import { requestIdFrom } from './request-id.ts'

test.each(['a', '4bf92f35-77b3', '!'.repeat(128), '~'])('%j is taken', (given) => {
  expect(requestIdFrom(given)).toBe(given)
})

test.each([
  ...[undefined, '', ' ', 'a b', 'a\nb', 'a\r\nX: y', 'ä', 'x'.repeat(129), '\u007f', 'a\t'],
  ...[['a'], ['a', 'b'], []],
])('%j is not, and a new one is made', (given) => {
  expect(requestIdFrom(given)).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/)
})

test('no two that are made are the same', () => {
  const made = Array.from({ length: 1000 }, () => requestIdFrom(undefined))
  expect(new Set(made).size).toBe(1000)
})
