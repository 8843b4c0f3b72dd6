// Faults of a rules file, with message and line. A fault that envoyproxy/ratelimit also reports has
// the same message.
import { describe, expect, test } from '@jest/globals'
import { parseRules } from './parse-rules.ts'
import { faultsOf, file, limit } from '../../test/kit/rules-file.ts'

describe('faults that envoyproxy/ratelimit also reports', () => {
  test.each([
    ['no domain', 'descriptors:\n', ['1: config file cannot have empty domain']],
    ['an empty file', '', ['1: config file cannot have empty domain']],
    ['an empty domain', '# c\ndomain:\n', ['2: config file cannot have empty domain']],
    ['no key', 'domain: d\ndescriptors:\n- value: v\n', ['3: descriptor has empty key']],
    ['an unknown unit', limit('unit: foo'), ["5: invalid rate limit unit 'foo'"]],
    ['the unit UNKNOWN', limit('unit: UNKNOWN'), ["5: invalid rate limit unit 'UNKNOWN'"]],
    ['no unit', limit('requests_per_unit: 5'), ["5: invalid rate limit unit ''"]],
    [
      'a duplicate limit',
      file('value: v', 'rate_limit: {unit: day}') + '- {key: k, value: v}\n',
      ["6: duplicate descriptor composite key 'd.k_v'"],
    ],
    [
      'a duplicate nested key without a value',
      file('descriptors:', '- key: a', '- key: a'),
      ["6: duplicate descriptor composite key 'd.k.a'"],
    ],
    ['a misspelt key', file('ratelimit: {}'), ["4: config error, unknown key 'ratelimit'"]],
    [
      'a key of Envoy that envoyproxy/ratelimit does not have',
      limit('unit: day', 'unit_multiplier: 2'),
      ["6: config error, unknown key 'unit_multiplier'"],
    ],
    [
      'a key that is a property of every JavaScript object',
      file('constructor: 1'),
      ["4: config error, unknown key 'constructor'"],
    ],
    [
      'a key that is a number',
      '0.25: d\ndomain: d\n',
      ['1: config error, key is not of type string: 0.25'],
    ],
    [
      'a key that is a flag',
      'domain: d\nYes: x\n',
      ['2: config error, key is not of type string: true'],
    ],
    [
      'a list of strings, null and lists',
      'domain: d\ndescriptors:\n- a\n-\n- [1, b]\n',
      ['a', '<nil>', '[1 b]'].map(
        (shown, at) =>
          `${at + 3}: config error, yaml file contains list of type other than map: ${shown}`,
      ),
    ],
    ['a value that is a fraction', file('value: 1.5'), ['4: error checking config']],
    ['a value that is a time', file('value: 2026-11-22'), ['4: error checking config']],
    [
      'unlimited with a unit',
      limit('unlimited: true', 'unit: Day'),
      ['6: should not specify rate limit unit when unlimited'],
    ],
    [
      'an empty name in replaces',
      limit('unit: day', 'requests_per_unit: 1', 'replaces:', '- name:'),
      ['8: should not have an empty replaces entry'],
    ],
    [
      'its own name in replaces',
      limit('unit: day', 'name: self', 'requests_per_unit: 1', 'replaces:', '- name: self'),
      ['9: replaces should not contain name of same descriptor'],
    ],
    [
      'share_threshold without a wildcard',
      file('value: v', 'share_threshold: true'),
      [
        '5: share_threshold can only be used with wildcard values ' +
          "(containing '*'), but found key 'k_v'",
      ],
    ],
    [
      'truncated YAML',
      "'''\n",
      ['2: error loading config file: yaml: line 2: found unexpected end of stream'],
    ],
  ])('%s', (_, text, faults) => {
    expect(faultsOf(text)).toEqual(faults)
  })

  test('a domain in two files is a fault, unless domains are merged', () => {
    const one = { name: 'one', text: 'domain: d\ndescriptors:\n- key: a\n' }
    const two = { name: 'two', text: '\ndomain: d\ndescriptors:\n- key: b\n' }
    expect(parseRules([one, two], { mergeDomains: false })).toEqual({
      faults: [{ file: 'two', line: 2, message: "duplicate domain 'd' in config file" }],
    })
    const merged = parseRules([one, two], { mergeDomains: true })
    if ('faults' in merged) throw new Error('rejected')
    expect([...(merged.rules.get('d')?.any.keys() ?? [])]).toEqual(['a', 'b'])
    expect(parseRules([one, one], { mergeDomains: true })).toEqual({
      faults: [{ file: 'one', line: 3, message: "duplicate descriptor composite key 'd.a'" }],
    })
  })
})

describe('faults in our additional fields', () => {
  const algorithmNames =
    'fixed_window, sliding_window_log, sliding_window_counter, token_bucket, leaky_bucket'
  const minute = 'unit: minute'
  const five = 'requests_per_unit: 5'
  const windowAllowed =
    'window must be a whole number and ms, s, m, h or d, such as 30s, from 1ms to 366d'
  test.each([
    [
      'an unknown algorithm',
      limit(minute, five, 'algorithm: gcra'),
      [`7: algorithm must be one of ${algorithmNames}: it is 'gcra'`],
    ],
    [
      'unit and window',
      limit(minute, 'window: 30s', five),
      ['6: unit and window are alternatives: only one of them is allowed'],
    ],
    ['a window of 0', limit('window: 0s', five), [`5: ${windowAllowed}: it is '0s'`]],
    [
      'a window that is too long',
      limit('window: 367d', five),
      [`5: ${windowAllowed}: it is '367d'`],
    ],
    ['a window in weeks', limit('window: 2w', five), [`5: ${windowAllowed}: it is '2w'`]],
    ['a window without a unit', limit('window: 30', five), [`5: ${windowAllowed}: it is '30'`]],
    [
      'a burst for an algorithm without one',
      limit(minute, five, 'algorithm: leaky_bucket', 'burst: 9'),
      ["8: burst is only for token_bucket: the algorithm is 'leaky_bucket'"],
    ],
    [
      'a burst of 0',
      limit(minute, five, 'algorithm: token_bucket', 'burst: 0'),
      [
        '8: error loading config file: ' +
          "burst must be a whole number from 1 to 4294967295: it is a number '0'",
      ],
    ],
    [
      'a log that is too long',
      limit(minute, 'requests_per_unit: 10001', 'algorithm: sliding_window_log'),
      [
        '6: error loading config file: requests_per_unit must be a whole number ' +
          "from 0 to 10000: it is a number '10001'",
      ],
    ],
    [
      'a bucket that cannot be counted exactly',
      limit('unit: year', 'requests_per_unit: 4294967291', 'algorithm: token_bucket'),
      [
        '6: token_bucket cannot count 4294967291 per window exactly: ' +
          'choose a rounder number, a smaller burst or a shorter window',
      ],
    ],
    [
      'an unknown on_store_error',
      limit(minute, five, 'on_store_error: error'),
      ["7: on_store_error must be one of local, allow, deny: it is 'error'"],
    ],
    [
      'fields of a limit when unlimited',
      limit('unlimited: yes', 'window: 1s', 'burst: 2'),
      ['6: should not specify window when unlimited', '7: should not specify burst when unlimited'],
    ],
    [
      'several limits as a quota',
      file('quota_mode: true', 'rate_limits:', `- {${minute}, ${five}}`, `- {unit: day, ${five}}`),
      ['4: quota_mode cannot be used with several limits'],
    ],
    ['no limits', file('rate_limit: []'), ['4: rate_limit must have 1 to 8 limits: it has 0']],
    [
      'rate_limit and rate_limits',
      file('rate_limit: {unlimited: true}', 'rate_limits: [{unlimited: true}]'),
      ['5: rate_limit and rate_limits are alternatives: only one of them is allowed'],
    ],
    [
      "a '*' in a key",
      'domain: d\ndescriptors:\n- key: a*\n',
      ["3: a key cannot contain '*', only a value can: it is 'a*'"],
    ],
    [
      'our fields in a wrong place',
      file('algorithm: token_bucket'),
      ["4: config error, key 'algorithm' is allowed only in rate_limit"],
    ],
    [
      'a key that is hashed in one descriptor only',
      file('hashed: true') + '- {key: k, value: v}\n',
      ["5: hashed must be equal in all descriptors of key 'k' on one level"],
    ],
  ])('%s', (_, text, faults) => {
    expect(faultsOf(text)).toEqual(faults)
  })

  const digits = 'a'.repeat(64)
  test.each([
    ...['secret', 'sec*', '*secret', '*@example.com', '**x', 'sha256:abc', 'sha256:zz*'],
    ...[`sha256:${'A'.repeat(64)}`, `sha256:${digits}a*`, 'x*sha256:a*', 'sha256:a*secret'],
    ...[`secretsha256:${digits}`, `sha256:${digits}secret`],
  ])('a plain value of a hashed key is a fault, whose message hides the value: %s', (value) => {
    const faults = faultsOf(file(`value: "${value}"`, 'hashed: true', 'share_threshold: true'))
    expect(faults[0]).toMatch(/^4: Cannot use this value for a hashed key: it must be absent/)
    expect(faults.join('\n')).not.toContain(value)
  })

  test('two plain values of a hashed key are not reported as duplicates', () => {
    const rejected = 'value: secret, hashed: true'
    const faults = faultsOf(
      `domain: d\ndescriptors: [{key: k, ${rejected}}, {key: k, ${rejected}}]\n`,
    )
    expect(faults.filter((fault) => !fault.startsWith('2: Cannot use this value'))).toEqual([])
  })

  test.each(['', '*', 'sha256:ab*', 'sha256:*0*f', `sha256:*${digits}`, `sha256:${digits}`])(
    'a hashed value may be %j',
    (value) => {
      expect(faultsOf(file(`value: "${value}"`, 'hashed: true'))).toEqual([])
    },
  )
})
