// The fields of envoyproxy/ratelimit are rendered in its format; our own fields are last.
import { expect, test } from '@jest/globals'
import { parseRules } from '../../limits/parse-rules.ts'
import { renderRules } from './render-rules.ts'

const rulesOf = (yaml: string) => {
  const parsed = parseRules([{ name: 'test.yaml', text: yaml }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(parsed.faults.map(({ message }) => message).join('\n'))
  return parsed.rules
}

const file = `
domain: edge
descriptors:
  - key: plain
    value: a
    rate_limit: {unit: minute, requests_per_unit: 20}
    descriptors:
      - key: below
        shadow_mode: true
        rate_limit: {unit: week, requests_per_unit: 5}
  - key: quota
    quota_mode: true
    rate_limit: {unit: second, requests_per_unit: 0, name: banned, replaces: [{name: x}, {name: y}]}
  - key: free
    value: 'a*'
    rate_limit: {unlimited: true}
  - key: bucket
    rate_limit:
      {algorithm: token_bucket, unit: second, requests_per_unit: 2, burst: 20, on_store_error: deny}
  - key: window
    rate_limit: {algorithm: sliding_window_counter, window: 30s, requests_per_unit: 3}
  - key: kept
    rate_limit: {unit: hour, requests_per_unit: 1, deny_consumes: false}
`

test('each rule has a line, at any depth of the tree', () => {
  expect(renderRules(rulesOf(file), []).split('\n')).toEqual([
    'edge.plain_a: unit=MINUTE requests_per_unit=20, shadow_mode: false, quota_mode: false',
    'edge.plain_a.below: unit=WEEK requests_per_unit=5, shadow_mode: true, quota_mode: false',
    'edge.free_a*: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false, ' +
      'unlimited: true',
    'edge.quota: unit=SECOND requests_per_unit=0, shadow_mode: false, quota_mode: true, ' +
      'name: banned, replaces: x y',
    'edge.bucket: unit=SECOND requests_per_unit=2, shadow_mode: false, quota_mode: false, ' +
      'algorithm: token_bucket, burst: 20, on_store_error: deny',
    'edge.window: unit=UNKNOWN requests_per_unit=3, shadow_mode: false, quota_mode: false, ' +
      'algorithm: sliding_window_counter, window: 30s',
    'edge.kept: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: false, ' +
      'deny_consumes: false',
    '',
  ])
})

test('faults of files that are not loaded are last, with file and line', () => {
  const faults = [
    { file: 'a.yaml', line: 3, message: "unknown key 'ratelimit'" },
    { file: 'b.yaml', line: 1, message: 'no domain' },
  ]
  const rules = rulesOf('domain: d\ndescriptors: []\n')
  expect(renderRules(rules, faults)).toBe(
    'the newest rules have faults and are not loaded:\n' +
      "a.yaml:3: unknown key 'ratelimit'\nb.yaml:1: no domain\n",
  )
  expect(renderRules(new Map(), [])).toBe('')
})
