// The verdict on a call, derived from the decisions of its limits.
import { describe, expect, test } from '@jest/globals'
import { admitted, decided, denied, limit } from '../../test/kit/checked-limits.ts'
import type { Decision } from './algorithm.ts'
import { tokenBucket } from './token-bucket.ts'
import {
  LimitRequestError,
  codeOf,
  type CheckedLimit,
  referenceLimitStateOf,
  statusesOf,
  reportedLimitOf,
} from './verdict.ts'

const second = { descriptorIndex: 1 }

describe('codeOf()', () => {
  const cases: [string, CheckedLimit[], string][] = [
    ['no limits', [], 'OK'],
    ['all admit', [decided({}), decided({})], 'OK'],
    ['one denies', [decided({}), decided({ decision: denied })], 'OVER_LIMIT'],
    [
      'a rule in shadow mode denies',
      [decided({}), decided({ rule: { isShadow: true }, decision: denied })],
      'OK',
    ],
    [
      'one of two quotas denies',
      [
        decided({ rule: { isQuota: true } }),
        decided({ rule: { isQuota: true }, decision: denied }),
      ],
      'OK',
    ],
    [
      'all quotas deny',
      [
        decided({ rule: { isQuota: true }, decision: denied }),
        decided({ rule: { isQuota: true }, decision: denied }),
        decided({}),
      ],
      'OVER_LIMIT',
    ],
  ]
  test.each(cases)('%s', (_, checked, code) => {
    expect(codeOf(checked, false)).toBe(code)
  })

  test('if all rules are quotas, one that admits is sufficient to admit the call', () => {
    expect(codeOf([decided({ decision: denied }), decided({})], true)).toBe('OK')
    expect(codeOf([decided({ decision: denied })], true)).toBe('OVER_LIMIT')
  })
})

describe('reportedLimitOf()', () => {
  test('if all limits admit, the one with the least remaining is reported', () => {
    const checked = [decided({}), decided({ rule: { name: 'tight' }, decision: { remaining: 2 } })]
    expect(reportedLimitOf(checked, 'OK')).toEqual({
      rule: 'tight',
      limit: 10,
      remaining: 2,
      resetUs: 30_000_001,
      retryAfterSeconds: 0,
    })
  })

  test('limits that were only peeked, or are in shadow mode, are not reported', () => {
    const peeked = decided({ hits: 0, decision: { remaining: 1 } })
    const shadow = decided({ rule: { isShadow: true }, decision: { remaining: 0 } })
    expect(reportedLimitOf([peeked, shadow, decided({})], 'OK')?.remaining).toBe(5)
    expect(reportedLimitOf([peeked, shadow], 'OK')).toBeUndefined()
  })

  test('of the limits that deny, the longest wait is reported, peeked limits included', () => {
    const checked = [
      decided({ decision: denied }),
      decided({
        hits: 0,
        rule: { name: 'long' },
        decision: { ...denied, retryAfterUs: 59_000_000 },
      }),
      decided({ decision: { remaining: 0 } }),
    ]
    expect(reportedLimitOf(checked, 'OVER_LIMIT')).toMatchObject({
      rule: 'long',
      remaining: 0,
      retryAfterSeconds: 59,
    })
  })

  test('a quota is reported only if no other limit denies: the one with the shortest wait', () => {
    const quota = (name: string, retryAfterUs: number) =>
      decided({ rule: { name, isQuota: true }, decision: { ...denied, retryAfterUs } })
    const rate = decided({ rule: { name: 'rate' }, decision: { ...denied, retryAfterUs: 1 } })
    const day = quota('day', 9e9)
    expect(reportedLimitOf([day, rate], 'OVER_LIMIT')?.rule).toBe('rate')
    expect(reportedLimitOf([rate, day], 'OVER_LIMIT')?.rule).toBe('rate')
    expect(reportedLimitOf([day, quota('hour', 5e8)], 'OVER_LIMIT')?.rule).toBe('hour')
    expect(reportedLimitOf([day, rate], 'OVER_LIMIT', true)?.rule).toBe('rate')
  })

  test('a wait is rounded up to at least 1 s; an infinite wait is one window', () => {
    const wait = (retryAfterUs: number) =>
      reportedLimitOf([decided({ decision: { ...denied, retryAfterUs } })], 'OVER_LIMIT')
        ?.retryAfterSeconds
    expect([wait(1), wait(1_000_000), wait(1_000_001), wait(Infinity)]).toEqual([1, 1, 2, 60])
  })

  test('of limits that are equally strict, the first is reported', () => {
    const names = [{ name: 'first' }, { name: 'last' }]
    const equal = (decision: Decision) => names.map((name) => decided({ rule: name, decision }))
    expect(reportedLimitOf(equal(admitted), 'OK')?.rule).toBe('first')
    expect(reportedLimitOf(equal(denied), 'OVER_LIMIT')?.rule).toBe('first')
  })

  test('if the call is admitted, quotas and other limits have the same precedence', () => {
    const quota = decided({ rule: { name: 'quota', isQuota: true }, decision: { remaining: 1 } })
    expect(reportedLimitOf([decided({}), quota], 'OK')?.rule).toBe('quota')
    const exhausted = decided({ rule: { name: 'used', isQuota: true }, decision: denied })
    expect(reportedLimitOf([quota, exhausted, decided({})], 'OK')?.rule).toBe('used')
  })

  test('the limit of a bucket is its burst', () => {
    const bucket = { algorithm: tokenBucket, limit: { ...limit, burst: 25 } }
    expect(reportedLimitOf([decided({ rule: bucket })], 'OK')?.limit).toBe(25)
  })
})

describe('referenceLimitStateOf()', () => {
  const isShadow = { isShadow: true }
  const cases: [string, CheckedLimit[], number | undefined][] = [
    ['nothing without limits', [], undefined],
    ['the least remaining', [decided({}), decided({ ...second, decision: { remaining: 2 } })], 2],
    [
      'a peeked limit with less remaining',
      [decided({ hits: 0, decision: { remaining: 1 } }), decided({ ...second })],
      1,
    ],
    ['the only limit, in shadow mode', [decided({ rule: isShadow })], 5],
    [
      'a limit in shadow mode that would deny',
      [decided({}), decided({ ...second, rule: isShadow, decision: denied })],
      0,
    ],
    [
      'nothing if the remainder exceeds 32 bits',
      [decided({ decision: { remaining: 2 ** 32 } })],
      undefined,
    ],
  ]
  test.each(cases)('reports %s', (_, checked, remaining) => {
    expect(referenceLimitStateOf(checked, false)?.remaining).toBe(remaining)
  })

  const own = (requests: number) => ({ limit: { ...limit, requests, burst: requests } })
  const limitOf = (checked: CheckedLimit[], areAllQuotas = false) =>
    referenceLimitStateOf(checked, areAllQuotas)?.limit

  test('the first of equal limits is reported, but the last of those that deny', () => {
    expect(limitOf([decided({ rule: own(1) }), decided({ ...second, rule: own(2) })])).toBe(1)
    const denying = [1, 2].map((descriptorIndex) =>
      decided({ descriptorIndex, rule: own(descriptorIndex), decision: denied }),
    )
    const shadow = decided({ rule: { ...own(7), isShadow: true }, decision: denied })
    const after = decided({ descriptorIndex: 3, rule: own(3), decision: { remaining: 0 } })
    expect(limitOf([shadow, ...denying, after])).toBe(2)
  })

  test('a quota that denies is ranked as a limit with 0 remaining', () => {
    const quota = (index: number) =>
      decided({
        descriptorIndex: index,
        rule: { ...own(index + 1), isQuota: true },
        decision: denied,
      })
    expect(limitOf([quota(0), quota(1)])).toBe(1)
    const rate = decided({ rule: own(9), decision: denied })
    expect(limitOf([rate, quota(1)])).toBe(9)
    expect(limitOf([quota(0), { ...rate, ...second }])).toBe(9)
    expect(limitOf([quota(0), { ...rate, ...second }], true)).toBe(1)
  })

  test('of several limits of a descriptor, the strictest one is reported', () => {
    const checked = [
      decided({ rule: own(1) }),
      decided({ rule: own(2), decision: { remaining: 1 } }),
    ]
    expect(limitOf([decided({ descriptorIndex: 2, decision: { remaining: 4 } }), ...checked])).toBe(
      2,
    )
    expect(referenceLimitStateOf(checked, false)).toEqual({
      limit: 2,
      remaining: 1,
      resetUs: 30_000_001,
    })
  })
})

describe('statusesOf()', () => {
  test('each descriptor has the status of its strictest limit', () => {
    const statuses = statusesOf(
      ['no-rule', 'unlimited', 'no-rule', 'no-rule'],
      [
        decided({ descriptorIndex: 2, decision: { remaining: 7 } }),
        decided({ descriptorIndex: 2, rule: { name: 'tight' }, decision: { remaining: 3 } }),
        decided({ descriptorIndex: 3, decision: { ...denied, remaining: 4 } }),
        decided({ descriptorIndex: 3, decision: { remaining: 1 } }),
      ],
    )
    const minute = { requestsPerUnit: 10, unit: 'MINUTE', name: undefined }
    expect(statuses).toEqual([
      { code: 'OK', currentLimit: undefined, limitRemaining: 0, resetSeconds: undefined },
      { code: 'OK', currentLimit: undefined, limitRemaining: 2 ** 32 - 1, resetSeconds: undefined },
      {
        code: 'OK',
        currentLimit: { ...minute, name: 'tight' },
        limitRemaining: 3,
        resetSeconds: 31,
      },
      { code: 'OVER_LIMIT', currentLimit: minute, limitRemaining: 0, resetSeconds: 31 },
    ])
  })

  test('a limit in shadow mode that would deny reports OK with 0 remaining', () => {
    const [status] = statusesOf(
      ['no-rule'],
      [decided({ rule: { isShadow: true }, decision: denied })],
    )
    expect(status).toMatchObject({ code: 'OK', limitRemaining: 0 })
  })
})

test('LimitRequestError has no stack trace; later errors have one', () => {
  expect(new LimitRequestError('a fault').stack).toBe('LimitRequestError: a fault')
  expect(new Error('a defect').stack).toContain('\n    at ')
})
