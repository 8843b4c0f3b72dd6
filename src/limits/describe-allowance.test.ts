// The syntax of allowances, and the sums of rules with them.
import { describe, expect, test } from '@jest/globals'
import { explainAllowances, parseAllowances } from './describe-allowance.ts'
import { parseRules } from './parse-rules.ts'

describe('parsed allowances', () => {
  test.each([
    ['8,5,12', { buckets: 8, burst: 5, perMinute: 12 }],
    ['1,1,1', { buckets: 1, burst: 1, perMinute: 1 }],
    ['1000000,1000000,1000000', { buckets: 1e6, burst: 1e6, perMinute: 1e6 }],
  ])('%s', (source, allowances) => {
    expect(parseAllowances(source)).toEqual(allowances)
  })

  test.each([
    ...['', '8', '8,5', '8,5,12,1', '8,5,', ',5,12', '8;5;12', ' 8,5,12', '8,5,12 ', 'a,5,12'],
    ...['8,5,x', '8,-5,12', '8,5.5,12', '0,5,12', '8,0,12', '8,5,0', '1000001,5,12'],
    ...['8,1000001,12', '8,5,1000001', '10000000,5,12', '8,5,12\n'],
  ])('rejects %j', (source) => {
    expect(parseAllowances(source)).toBeUndefined()
  })
})

describe('the sum of a rule with the allowances', () => {
  const text = `
domain: edge
descriptors:
  - key: client
    rate_limits:
      - {algorithm: token_bucket, unit: minute, requests_per_unit: 100, burst: 20}
      - {algorithm: fixed_window, unit: day, requests_per_unit: 1000}
      - {unlimited: true}
`
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  const rules = 'rules' in parsed ? parsed.rules : new Map<string, never>()
  const explain = (key: string) =>
    explainAllowances(
      { rules, domain: 'edge', descriptor: { entries: [{ key, value: 'a' }] } },
      { buckets: 8, burst: 5, perMinute: 12 },
    )

  test('is one line for each rule with a burst', () => {
    expect(explain('client')).toEqual([
      'edge.client with 8 allowance buckets (burst 5, 12 per minute each): 3.267 per second, ' +
        'burst 60',
    ])
  })

  test('is absent if no rule matches', () => {
    expect(explain('other')).toEqual([])
  })
})
