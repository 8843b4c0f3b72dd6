// The script's arguments and the validation of its reply.
import { describe, expect, test } from '@jest/globals'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { decodeReply, encodeCalls } from './count-wire.ts'

const limit = { requests: 2, windowUs: 1_000_000_000_000_000, burst: 4, denyConsumes: true }
const update: CounterUpdate = {
  key: 'a',
  algorithm: fixedWindow,
  limit,
  hits: 1,
  veto: 'alone',
  isPerSecond: false,
}

describe('encodeCalls()', () => {
  test('lists each limit once and formats numbers without exponents', () => {
    const other = { ...update, key: 'b', algorithm: tokenBucket, hits: -(2 ** 32 - 1) }
    const numbers = ['2', '1000000000000000', '4', '1']
    expect(encodeCalls([[update, other], [update]], { keyPrefix: 'p:' })).toEqual([
      ...['3', 'p:a', 'p:b', 'p:a', '', '2'],
      ...['alone', 'fixed_window', ...numbers, '0'],
      ...['alone', 'token_bucket', ...numbers, '2', '500000000000000', '1'],
      ...['2', '1', '1', '2', '-4294967295', '1', '1', '1'],
    ])
  })

  test('includes a clock that replaces the server’s', () => {
    expect(encodeCalls([[update]], { keyPrefix: '', nowUs: 5 })[2]).toBe('5')
  })
})

describe('decodeReply()', () => {
  test('returns a decision per update, grouped by call', () => {
    const decided = decodeReply(
      [3, 20, 0, 0, 0, 30, 1, -1, 0, 40, 2, 7, 99],
      [[update], [update, update]],
    )
    expect(decided.map((call) => call.length)).toEqual([1, 2])
    expect(decided.flat()).toMatchObject([
      { admitted: true, remaining: 3, resetUs: 20, over: 0, retryAfterUs: 0, decidedAtUs: 99 },
      { admitted: false, remaining: 0, resetUs: 30, over: 1, retryAfterUs: Infinity },
      { admitted: false, remaining: 0, resetUs: 40, over: 2, retryAfterUs: 7 },
    ])
  })

  test.each([
    ['nothing', null],
    ['a string', '1 2 3 0'],
    ['too few numbers', [1, 2, 3, 0]],
    ['too many numbers', [1, 2, 3, 0, 0, 9]],
    ['a string among numbers', [1, '2', 3, 0, 9]],
    ['a negative count', [-1, 2, 3, 0, 9]],
    ['an unknown wait', [1, 2, 3, -2, 9]],
    ['a negative time', [1, 2, 3, 0, -9]],
    ['a fraction', [1.5, 2, 3, 0, 9]],
    ['an error', [1, 2, 3, new Error('no'), 9]],
  ])('rejects %s', (_, reply) => {
    expect(() => decodeReply(reply, [[update]])).toThrow('the reply')
  })
})
