// Faults of keys and of lists in a rules file.
import { expect, test } from '@jest/globals'
import { renderFault } from './rule-fault.ts'
import { parseRules } from './parse-rules.ts'

function reportsOf(...lines: readonly string[]): readonly string[] {
  const text = `domain: d\n${lines.join('\n')}\n`
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  return ('faults' in parsed ? parsed.faults : parsed.warnings).map(renderFault)
}

const notString = 'config error, key is not of type string'
const notMap = 'config error, yaml file contains list of type other than map'
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at).join(', ')

test.each([
  ['a number', '5: x', `${notString}: 5`],
  ['a flag', 'true: x', `${notString}: true`],
  ['nothing', '~: x', `${notString}: <nil>`],
  ['a fraction', '1.5: x', `${notString}: 1.5`],
  ['a time', '2026-11-22: x', `${notString}: 2026-11-22`],
  ['a mapping', '? {a: b}\n: x', `${notString}: map[...]`],
  ['a list', '? [a, [b], {c: d}]\n: x', `${notString}: [a [...] map[...]]`],
  ['ten items', `? [${numbers(10)}]\n: x`, `${notString}: [0 1 2 3 4 5 6 7 8 9]`],
  ['eleven items', `? [${numbers(11)}]\n: x`, `${notString}: [0 1 2 3 4 5 6 7 8 9]`],
])('a key that is %s', (_, line, message) => {
  expect(reportsOf(line)).toContain(`f:2: ${message}`)
})

test.each([
  ['a number', 'descriptors: [5]', `${notMap}: 5`],
  ['a list', 'descriptors: [[5, 6]]', `${notMap}: [5 6]`],
  ['a fraction', 'descriptors: 1.5', 'error checking config'],
])('a value that is %s', (_, line, message) => {
  expect(reportsOf(line)).toContain(`f:2: ${message}`)
})

test('keys below a key that has no mapping are not in a wrong place', () => {
  const reports = reportsOf('descriptors:', '- key: {unit: x, other: y}')
  expect(reports).toContain("f:3: config error, unknown key 'other'")
  expect(reports.join('\n')).not.toContain('is allowed only')
})

test('keys in a wrong place are a warning, or a fault if only Curtail has the key', () => {
  expect(reportsOf('unit: day')).toEqual([
    "f:2: key 'unit' is allowed only in rate_limit: it is ignored",
  ])
  expect(reportsOf('rate_limit: {descriptors: []}').join('\n')).toContain(
    "key 'descriptors' is allowed only in the file itself or a descriptor: it is ignored",
  )
  expect(reportsOf('window: 1s')).toEqual([
    "f:2: config error, key 'window' is allowed only in rate_limit",
  ])
  expect(reportsOf('toString: 1')).toEqual(["f:2: config error, unknown key 'toString'"])
})

/** A file with all keys, each in each place where it is allowed. */
const everywhere = `descriptors:
- key: a
  value: "v*"
  shadow_mode: false
  quota_mode: false
  detailed_metric: false
  value_to_metric: false
  share_threshold: true
  hashed: false
  metadata: {x: 1}
  rate_limits:
  - {name: n, algorithm: token_bucket, window: 1s, requests_per_unit: 1, burst: 2}
  - {unit: day, requests_per_unit: 1, deny_consumes: true, on_store_error: deny}
  descriptors:
  - key: b
    rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: n}]}
  - key: c
    rate_limit: {unlimited: true}`

test('no key is reported where it is allowed', () => {
  expect(reportsOf(everywhere)).toEqual([])
})

test.each([
  ['domain', 'the file itself'],
  ...['key', 'value', 'rate_limit', 'shadow_mode', 'quota_mode', 'detailed_metric'].map(descriptor),
  ...['value_to_metric', 'share_threshold', 'metadata', 'rate_limits', 'hashed'].map(descriptor),
  ...['unit', 'requests_per_unit', 'unlimited', 'replaces', 'algorithm', 'window'].map(limit),
  ...['burst', 'deny_consumes', 'on_store_error'].map(limit),
  ['name', 'rate_limit or replaces'],
])('%s is allowed only in %s', (key, places) => {
  const wrong = key === 'domain' || places === 'rate_limit' ? 'descriptors:\n- key: a\n  ' : ''
  const reports = reportsOf(`${wrong}${key}: x`).join('\n')
  expect(reports).toContain(`key '${key}' is allowed only in ${places}`)
})

function descriptor(key: string): [string, string] {
  return [key, 'a descriptor']
}

function limit(key: string): [string, string] {
  return [key, 'rate_limit']
}

test('a mapping or a list with many aliases is reported once', () => {
  const ofMap = reportsOf('descriptors: [&a {key: k, foo: 1}, *a, {key: l, descriptors: [*a]}]')
  expect(ofMap.filter((line) => line.includes("unknown key 'foo'"))).toHaveLength(1)
  const ofList = reportsOf(
    'descriptors:',
    '- {key: k, descriptors: &a [5]}',
    '- {key: l, descriptors: *a}',
  )
  expect(ofList.filter((line) => line.includes('list of type'))).toHaveLength(1)
})
