// What a call is answered, by the decisions of its limits.
import { describe, expect, test } from '@jest/globals'
import type { Decision } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import type { Rule } from './rule.ts'
import { tokenBucket } from './token-bucket.ts'
import {
  LimitRequestError,
  codeOf,
  type CheckedLimit,
  metadataOf,
  referenceLimitStateOf,
  statusesOf,
  reportedLimitOf,
} from './verdict.ts'

const limit = { requests: 10, windowUs: 60_000_000, burst: 10, denyConsumes: true }

const rule: Rule = {
  path: 'shop.client',
  identity: 'shop.client',
  name: undefined,
  replaces: [],
  algorithm: fixedWindow,
  limit,
  unit: 'MINUTE',
  isShadow: false,
  isQuota: false,
  onStoreError: 'local',
  metadata: undefined,
  hasDetailedMetric: false,
}

const admitted: Decision = {
  admitted: true,
  remaining: 5,
  over: 0,
  resetUs: 30_000_001,
  retryAfterUs: 0,
  next: undefined,
  expiresInUs: 0,
}
const denied: Decision = {
  ...admitted,
  admitted: false,
  remaining: 0,
  over: 1,
  retryAfterUs: 30_000_001,
}

const judge = (of: {
  at?: number
  rule?: Partial<Rule>
  hits?: number
  decision?: Partial<Decision>
}): CheckedLimit => ({
  at: of.at ?? 0,
  rule: { ...rule, ...of.rule },
  hits: of.hits ?? 1,
  decision: { ...admitted, ...of.decision },
})

describe('codeOf()', () => {
  const cases: [string, CheckedLimit[], string][] = [
    ['nothing to be checked', [], 'OK'],
    ['all admit', [judge({}), judge({})], 'OK'],
    ['one denies', [judge({}), judge({ decision: denied })], 'OVER_LIMIT'],
    ['a shadow denies', [judge({}), judge({ rule: { isShadow: true }, decision: denied })], 'OK'],
    [
      'one of two quotas denies',
      [judge({ rule: { isQuota: true } }), judge({ rule: { isQuota: true }, decision: denied })],
      'OK',
    ],
    [
      'all quotas deny',
      [
        judge({ rule: { isQuota: true }, decision: denied }),
        judge({ rule: { isQuota: true }, decision: denied }),
        judge({}),
      ],
      'OVER_LIMIT',
    ],
  ]
  test.each(cases)('%s', (_, checked, code) => {
    expect(codeOf(checked, false)).toBe(code)
  })

  test('where all rules are quotas, one that admits lets the call pass', () => {
    expect(codeOf([judge({ decision: denied }), judge({})], true)).toBe('OK')
    expect(codeOf([judge({ decision: denied })], true)).toBe('OVER_LIMIT')
  })
})

describe('reportedLimitOf()', () => {
  test('of those that admit, the one with the least remaining speaks', () => {
    const checked = [judge({}), judge({ rule: { name: 'tight' }, decision: { remaining: 2 } })]
    expect(reportedLimitOf(checked, 'OK')).toEqual({
      rule: 'tight',
      limit: 10,
      remaining: 2,
      resetUs: 30_000_001,
      retryAfterSeconds: 0,
    })
  })

  test('a limit that was only looked at, or is a shadow, speaks not', () => {
    const looked = judge({ hits: 0, decision: { remaining: 1 } })
    const shadow = judge({ rule: { isShadow: true }, decision: { remaining: 0 } })
    expect(reportedLimitOf([looked, shadow, judge({})], 'OK')?.remaining).toBe(5)
    expect(reportedLimitOf([looked, shadow], 'OK')).toBeUndefined()
  })

  test('of those that deny, the longest wait speaks, also of one that was looked at', () => {
    const checked = [
      judge({ decision: denied }),
      judge({ hits: 0, rule: { name: 'long' }, decision: { ...denied, retryAfterUs: 59_000_000 } }),
      judge({ decision: { remaining: 0 } }),
    ]
    expect(reportedLimitOf(checked, 'OVER_LIMIT')).toMatchObject({
      rule: 'long',
      remaining: 0,
      retryAfterSeconds: 59,
    })
  })

  test('a quota speaks only where quotas alone deny, and then the one that frees first', () => {
    const quota = (name: string, retryAfterUs: number) =>
      judge({ rule: { name, isQuota: true }, decision: { ...denied, retryAfterUs } })
    const rate = judge({ rule: { name: 'rate' }, decision: { ...denied, retryAfterUs: 1 } })
    const day = quota('day', 9e9)
    expect(reportedLimitOf([day, rate], 'OVER_LIMIT')?.rule).toBe('rate')
    expect(reportedLimitOf([rate, day], 'OVER_LIMIT')?.rule).toBe('rate')
    expect(reportedLimitOf([day, quota('hour', 5e8)], 'OVER_LIMIT')?.rule).toBe('hour')
    expect(reportedLimitOf([day, rate], 'OVER_LIMIT', true)?.rule).toBe('rate')
  })

  test('a wait is rounded up, at least a second, and a window where it would be for ever', () => {
    const wait = (retryAfterUs: number) =>
      reportedLimitOf([judge({ decision: { ...denied, retryAfterUs } })], 'OVER_LIMIT')
        ?.retryAfterSeconds
    expect([wait(1), wait(1_000_000), wait(1_000_001), wait(Infinity)]).toEqual([1, 1, 2, 60])
  })

  test('the limit of a bucket is its burst', () => {
    const bucket = { algorithm: tokenBucket, limit: { ...limit, burst: 25 } }
    expect(reportedLimitOf([judge({ rule: bucket })], 'OK')?.limit).toBe(25)
  })
})

describe('referenceLimitStateOf()', () => {
  const isShadow = { isShadow: true }
  const cases: [string, CheckedLimit[], number | undefined][] = [
    ['nothing is checked', [], undefined],
    ['the least remaining', [judge({}), judge({ at: 1, decision: { remaining: 2 } })], 2],
    ['a look that has less', [judge({ hits: 0, decision: { remaining: 1 } }), judge({ at: 1 })], 1],
    ['a shadow alone', [judge({ rule: isShadow })], 5],
    [
      'a shadow that would deny',
      [judge({}), judge({ at: 1, rule: isShadow, decision: denied })],
      0,
    ],
    ['all that there can be, as nothing', [judge({ decision: { remaining: 2 ** 32 } })], undefined],
  ]
  test.each(cases)('reports %s', (_, checked, remaining) => {
    expect(referenceLimitStateOf(checked, false)?.remaining).toBe(remaining)
  })

  const own = (requests: number) => ({ limit: { ...limit, requests, burst: requests } })
  const limitOf = (checked: CheckedLimit[], areAllQuotas = false) =>
    referenceLimitStateOf(checked, areAllQuotas)?.limit

  test('of equals the first speaks, but of those that deny the last, whatever is before', () => {
    expect(limitOf([judge({ rule: own(1) }), judge({ at: 1, rule: own(2) })])).toBe(1)
    const denying = [1, 2].map((at) => judge({ at, rule: own(at), decision: denied }))
    const shadow = judge({ rule: { ...own(7), isShadow: true }, decision: denied })
    const after = judge({ at: 3, rule: own(3), decision: { remaining: 0 } })
    expect(limitOf([shadow, ...denying, after])).toBe(2)
  })

  test('a quota that denies speaks as one with nothing left, not as one that denies', () => {
    const quota = (at: number) =>
      judge({ at, rule: { ...own(at + 1), isQuota: true }, decision: denied })
    expect(limitOf([quota(0), quota(1)])).toBe(1)
    const rate = judge({ rule: own(9), decision: denied })
    expect(limitOf([rate, quota(1)])).toBe(9)
    expect(limitOf([quota(0), { ...rate, at: 1 }])).toBe(9)
    expect(limitOf([quota(0), { ...rate, at: 1 }], true)).toBe(1)
  })

  test('of several limits of a descriptor the one that decides it speaks', () => {
    const checked = [judge({ rule: own(1) }), judge({ rule: own(2), decision: { remaining: 1 } })]
    expect(limitOf([judge({ at: 2, decision: { remaining: 4 } }), ...checked])).toBe(2)
    expect(referenceLimitStateOf(checked, false)).toEqual({
      limit: 2,
      remaining: 1,
      resetUs: 30_000_001,
    })
  })
})

describe('statusesOf()', () => {
  test('each descriptor has the status of the limit that decides it', () => {
    const statuses = statusesOf(
      ['no-limit', 'unlimited', 'no-limit', 'no-limit'],
      [
        judge({ at: 2, decision: { remaining: 7 } }),
        judge({ at: 2, rule: { name: 'tight' }, decision: { remaining: 3 } }),
        judge({ at: 3, decision: { ...denied, remaining: 4 } }),
        judge({ at: 3, decision: { remaining: 1 } }),
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

  test('a shadow that would deny lets pass, with nothing left', () => {
    const [status] = statusesOf(
      ['no-limit'],
      [judge({ rule: { isShadow: true }, decision: denied })],
    )
    expect(status).toMatchObject({ code: 'OK', limitRemaining: 0 })
  })
})

describe('metadataOf()', () => {
  test('merges what the rules that let pass say; of two values the first stays', () => {
    const checked = [
      judge({ at: 0, rule: { metadata: { a: 1, deep: { x: 1, y: [1] } } } }),
      judge({ at: 1, rule: { metadata: { a: 2, b: 'b', deep: { x: 2, z: null } } } }),
      judge({ at: 2, rule: { metadata: { never: true } }, decision: denied }),
    ]
    const statuses = statusesOf(['no-limit', 'no-limit', 'no-limit'], checked)
    expect(metadataOf(checked, statuses)).toEqual({
      a: 1,
      b: 'b',
      deep: { x: 1, y: [1], z: null },
    })
  })

  test('a key that JavaScript holds special is a key like others', () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": true}}') as Rule['metadata']
    const checked = [
      judge({ rule: { metadata: { a: 1 } } }),
      judge({ rule: { metadata: hostile } }),
    ]
    const merged = metadataOf(checked, statusesOf(['no-limit'], checked))
    expect(JSON.stringify(merged)).toBe('{"a":1,"__proto__":{"polluted":true}}')
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype)
  })
})

test('a faulty call costs no stack, and errors after it have theirs', () => {
  expect(new LimitRequestError('a fault').stack).toBe('LimitRequestError: a fault')
  expect(new Error('a defect').stack).toContain('\n    at ')
})
