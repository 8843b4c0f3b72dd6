// Descriptions of rules, and explanations of which rule a descriptor matches.
import { describe, expect, test } from '@jest/globals'
import { rulesOf } from '../../test/kit/rules-file.ts'
import { describeRules, explainMatch, renderWindow } from './describe-rules.ts'
import { parseRules } from './parse-rules.ts'

const rules = rulesOf(`
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
])('%d µs are %s', (us, rendered) => {
  expect(renderWindow(us)).toBe(rendered)
})

describe('explainMatch()', () => {
  test('lists each step, and every limit that is hit', () => {
    expect(explain('route=create,client=10.0.0.1')).toEqual([
      'route=create: exact value, at d.route_create',
      'client=10.0.0.1: any value of the key, a counter for each value, at d.route_create.client',
      'hits d.route_create.client: token_bucket, 2 per second, burst 20 (fast)',
      'hits d.route_create.client: fixed_window, 100 per 90s, denied hits do not count, ' +
        'on store error: deny',
    ])
  })

  test('distinguishes shared and other wildcards, and keys without a value', () => {
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
        'quota: denies only if every quota of the call is exhausted, replaces x',
    ])
  })

  test('reports why no rule matches', () => {
    expect(explain('route=other')).toEqual([
      'route=other: none: no descriptor of this key has the value',
      'no rule: no descriptor matches route; matching does not backtrack',
    ])
    expect(explain('client=x')[0]).toBe(
      'client=x: none: no descriptor on this level has the key; keys: route, file, api_key',
    )
    expect(explain('file=c,more=d')).toEqual([
      expect.stringMatching(/^file=c: any value/),
      'more=d: none: no descriptor on this level has the key; keys: none',
      'no rule: no descriptor matches more; matching does not backtrack',
    ])
    expect(explain('route=create').at(-1)).toBe(
      'no rule: d.route_create has no rate_limit; a rule applies only to its own depth',
    )
    expect(explain('file=c', 'e')).toEqual([
      'no rule: domain "e" has no rules; domains with rules: "d"',
    ])
    expect(explainMatch({ rules, domain: 'd', descriptor: { entries: [] } })).toEqual([
      'no rule: the descriptor has no entries',
    ])
  })

  test('never shows hashed values', () => {
    const lines = explain('api_key=hidden').join('\n')
    expect(lines).toMatch(/^api_key=sha256:[0-9a-f]{64}, hashed: any value/)
    expect(lines).not.toContain('hidden')
  })

  test('explains a limit override of the caller', () => {
    const override = { requestsPerUnit: 7, unit: 'DAY' } as const
    const descriptor = { entries: [{ key: 'k', value: 'v' }], override }
    expect(explainMatch({ rules, domain: 'd', descriptor })).toEqual([
      'hits d.k_v: fixed_window, 7 per day',
    ])
  })
})

test('describeRules() returns a row for each limit, and a warning about Redis Cluster', () => {
  const { rows, warnings } = describeRules(rules, { isRedisCluster: true })
  expect(rows.map((cells) => cells.slice(0, 5).join(' '))).toEqual([
    'd.route_create.client token_bucket 2 second 20',
    'd.route_create.client fixed_window 100 90s -',
    'd.file_a*z fixed_window 0 day -',
    'd.file_b* - unlimited - -',
    'd.file fixed_window 1 day -',
    'd.api_key fixed_window 1 day -',
  ])
  expect(rows.map((cells) => cells.slice(5))).toEqual([
    ['fast', ''],
    ['-', 'denied hits do not count; on store error: deny'],
    ['-', 'denies every request'],
    ['-', 'shadow: denies nothing'],
    ['-', 'quota: denies only if every quota of the call is exhausted; replaces x'],
    ['-', ''],
  ])
  expect(warnings).toEqual([
    'on Redis Cluster only keys with equal hash tags are counted atomically; ' +
      'rules that require it (deny_consumes: false): 2 of 6',
  ])
  expect(describeRules(rules).warnings).toEqual([])
  const text = 'domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]\n'
  const plain = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in plain) throw new Error('the rules have faults')
  expect(describeRules(plain.rules, { isRedisCluster: true }).warnings).toEqual([])
})
