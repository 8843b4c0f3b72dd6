// What people are told of rules and of the way of a descriptor through them.
import { describe, expect, test } from '@jest/globals'
import { describeRules, explainMatch, renderWindow } from './describe-rules.ts'
import type { RuleSet } from './rule.ts'
import { parseRules } from './rules.ts'

const parse = (text: string): RuleSet => {
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  return parsed.rules
}

const rules = parse(`
domain: d
descriptors:
- key: route
  value: create
  descriptors:
  - key: client
    rate_limits:
    - {algorithm: token_bucket, unit: second, requests_per_unit: 2, burst: 20, name: fast}
    - {window: 90s, requests_per_unit: 100, deny_consumes: false, on_store_error: deny}
- {key: file, value: a*z, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: file, value: b*, shadow_mode: true, rate_limit: {unlimited: true}}
- {key: file, quota_mode: y, rate_limit: {window: 24h, requests_per_unit: 1, replaces: [{name: x}]}}
- {key: api_key, hashed: true, rate_limit: {unit: day, requests_per_unit: 1}}
`)

const explain = (text: string, domain = 'd') => {
  const entries = text.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=')
    return { key, value }
  })
  return explainMatch({ rules, domain, descriptor: { entries } })
}

test.each([
  [1000, '1ms'],
  [1_500_000, '1500ms'],
  [90_000_000, '90s'],
  [300_000_000, '5m'],
  [5_400_000_000, '90m'],
  [604_800_000_000, '7d'],
])('%d µs are %s', (us, words) => {
  expect(renderWindow(us)).toBe(words)
})

describe('explainMatch()', () => {
  test('names each step, and every limit that is hit', () => {
    expect(explain('route=create,client=10.0.0.1')).toEqual([
      'route=create: exact value, at d.route_create',
      'client=10.0.0.1: any value of the key, a counter for each value, at d.route_create.client',
      'hits d.route_create.client: token_bucket, 2 per second, burst 20 (fast)',
      'hits d.route_create.client: fixed_window, 100 per 90s, denied hits do not count, ' +
        'on store error: deny',
    ])
  })

  test('tells wildcards, shared and not, from any value', () => {
    expect(explain('file=abcz')).toEqual([
      'file=abcz: wildcard a*z, one counter for all that match it, at d.file_a*z',
      'hits d.file_a*z: fixed_window, 0 per day, denies every request',
    ])
    expect(explain('file=bcz')).toEqual([
      'file=bcz: wildcard b*, a counter for each value, at d.file_b*',
      'hits d.file_b*: unlimited, shadow: denies nothing',
    ])
    expect(explain('file=c')).toEqual([
      'file=c: any value of the key, a counter for each value, at d.file',
      'hits d.file: fixed_window, 1 per day, ' +
        'quota: denies only if every quota of the call is over, replaces x',
    ])
  })

  test('says why there is no rule', () => {
    expect(explain('route=other')).toEqual([
      'route=other: none: no descriptor of this key has the value',
      'no rule: route leads nowhere; no other way is tried',
    ])
    expect(explain('client=x')[0]).toBe(
      'client=x: none: no descriptor here has the key; there is route, file, api_key',
    )
    expect(explain('file=c,more=d')).toEqual([
      expect.stringMatching(/^file=c: any value/),
      'more=d: none: no descriptor here has the key; there is nothing',
      'no rule: more leads nowhere; no other way is tried',
    ])
    expect(explain('route=create').at(-1)).toBe(
      'no rule: d.route_create has no rate_limit of its own; rules count only at their depth',
    )
    expect(explain('file=c', 'e')).toEqual(['no rule: domain "e" has none; known: "d"'])
    expect(explainMatch({ rules, domain: 'd', descriptor: { entries: [] } })).toEqual([
      'no rule: the descriptor has no entries',
    ])
  })

  test('never shows what is hashed', () => {
    const lines = explain('api_key=hidden').join('\n')
    expect(lines).toMatch(/^api_key=sha256:[0-9a-f]{64}, hashed: any value/)
    expect(lines).not.toContain('hidden')
  })

  test('follows a limit that the caller brings', () => {
    const override = { requestsPerUnit: 7, unit: 'DAY' } as const
    const descriptor = { entries: [{ key: 'k', value: 'v' }], override }
    expect(explainMatch({ rules, domain: 'd', descriptor })).toEqual([
      'hits d.k_v: fixed_window, 7 per day',
    ])
  })
})

test('describeRules() has a row for each limit, and one remark where Redis Cluster differs', () => {
  const { rows, remarks } = describeRules(rules)
  expect(rows.map((cells) => cells.slice(0, 5).join(' '))).toEqual([
    'd.route_create.client token_bucket 2 second 20',
    'd.route_create.client fixed_window 100 90s -',
    'd.file_a*z fixed_window 0 day -',
    'd.file_b* - unlimited - -',
    'd.file fixed_window 1 day -',
    'd.api_key fixed_window 1 day -',
  ])
  expect(remarks).toEqual([
    'on Redis Cluster all-or-nothing holds only for keys with one hash tag; ' +
      'rules it is asked of, by deny_consumes: 2 of 6',
  ])
  const text = 'domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]\n'
  const plain = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in plain) throw new Error('the rules have faults')
  expect(describeRules(plain.rules).remarks).toEqual([])
})
