// The reserved words: the list of the contract, in any case.
import { expect, test } from '@jest/globals'
import { isReserved, servedSegments } from './reserved.ts'

const contract = [
  ...['api', 'admin', 'app', 'assets', 'static', 'health', 'healthz', 'livez', 'readyz', 'metrics'],
  ...['status', 'login', 'about', 'help', 'terms', 'abuse', 'v1', 'v0', 'v123456789'],
  ...servedSegments,
]

test.each(contract)('%j is reserved, in any case', (word) => {
  const mixed = Array.from(word, (c, i) => (i % 2 === 0 ? c.toUpperCase() : c)).join('')
  expect([word, word.toUpperCase(), mixed].map(isReserved)).toEqual([true, true, true])
})

test.each(['v', 'v1a', 'av1', 'v-1', 'api1', '-api', 'apis', 'Abuses', 'abc1234'])(
  '%j is not reserved',
  (word) => {
    expect(isReserved(word)).toBe(false)
  },
)
