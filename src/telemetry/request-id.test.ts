// Request ids: the edge's if it is safe in a log line, otherwise a new one.
import { expect, test } from '@jest/globals'
import { requestIdFrom, requestIdOf } from './request-id.ts'

test.each(['a', '4bf92f35-77b3', '!'.repeat(128), '~'])('%j is used', (given) => {
  expect(requestIdFrom(given)).toBe(given)
})

test.each([
  ...[undefined, '', ' ', 'a b', 'a\nb', 'a\r\nX: y', 'ä', 'x'.repeat(129), '\u007f', 'a\t'],
  ...[['a'], ['a', 'b'], []],
])('%j is replaced with a new id', (given) => {
  expect(requestIdFrom(given)).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/)
})

test('new ids are unique', () => {
  const ids = Array.from({ length: 1000 }, () => requestIdFrom(undefined))
  expect(new Set(ids).size).toBe(1000)
})

test('the id of a request stays the same', () => {
  for (const given of ['r-1', 'a b', undefined]) {
    const req = { headers: { 'x-request-id': given } }
    const id = requestIdOf(req)
    expect([requestIdOf(req), req.headers['x-request-id']]).toEqual([id, id])
    expect(id === given).toBe(given === 'r-1')
  }
})
