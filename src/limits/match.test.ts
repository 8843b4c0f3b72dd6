// The rules, counters and metric names that a descriptor matches: the cases of the tests of
// envoyproxy/ratelimit, and defects of its matching that this implementation avoids.
import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { rulesOf } from '../../test/kit/rules-file.ts'
import type { Entry } from './descriptor.ts'
import { counterKey, type Match, matchDescriptor } from './match.ts'
import type { RuleSet } from './rule.ts'

const file = (...lines: string[]) => rulesOf(`domain: d\ndescriptors:\n${lines.join('\n')}\n`)

/** Entries of `k=v,k=v`. */
const entriesOf = (text: string): Entry[] =>
  text.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=')
    return { key, value }
  })
const find = (rules: RuleSet, text: string) =>
  matchDescriptor({ rules, domain: 'd', descriptor: { entries: entriesOf(text) } })

function hit(rules: RuleSet, text: string): Match {
  const match = find(rules, text)
  if (typeof match === 'string') throw new Error(`${text}: ${match}`)
  return match
}
const pathOf = (rules: RuleSet, text: string) => hit(rules, text).rules[0]?.path
const metricOf = (rules: RuleSet, text: string) => hit(rules, text).metricPath
const counterOf = (rules: RuleSet, text: string) => {
  const { rules: found, values } = hit(rules, text)
  return found.map((rule) => counterKey(rule, values)).join()
}
const limit = 'rate_limit: {unit: minute, requests_per_unit: 5}'

describe('a tree of exact values and keys without a value', () => {
  const rules = file(
    `- {key: a, value: x, descriptors: [{key: b, ${limit}}, {key: b, value: y, ${limit}}]}`,
    `- {key: c, ${limit}}`,
    `- {key: c, value: free}`,
    `- {key: e, value: z, ${limit}, descriptors: [{key: f, value: w, ${limit}}]}`,
  )
  test.each([
    ['a=x,b=other', 'd.a_x.b'],
    ['a=x,b=y', 'd.a_x.b_y'],
    ['c=anything', 'd.c'],
    ['c=', 'd.c'],
    ['e=z', 'd.e_z'],
    ['e=z,f=w', 'd.e_z.f_w'],
  ])('%s hits %s', (text, path) => {
    expect(pathOf(rules, text)).toBe(path)
  })

  test.each([
    ['a=x', 'the descriptor has no limit'],
    ['a=other', 'no such value'],
    ['c=free', 'a value without a limit is exempt'],
    ['c=free2,g=h', 'the request is deeper'],
    ['a=x,b=y,c=z', 'the request is deeper'],
    ['e=z,f=other', 'no fallback to e'],
    ['b=y', 'only below a'],
  ])('%s hits nothing: %s', (text) => {
    expect(find(rules, text)).toBe('no-rule')
  })

  test('a descriptor without entries hits nothing; a domain without rules is unknown', () => {
    const none = { entries: [] }
    expect(matchDescriptor({ rules, domain: 'd', descriptor: none })).toBe('no-rule')
    expect(matchDescriptor({ rules, domain: 'other', descriptor: none })).toBe('unknown-domain')
  })
})

describe('wildcards', () => {
  const rules = file(
    `- {key: k, value: foo1, ${limit}}`,
    `- {key: k, value: f*1, ${limit}}`,
    `- {key: k, value: foo*, descriptors: [{key: n, ${limit}}]}`,
    `- {key: k, ${limit}}`,
    `- {key: l, value: a*b*, ${limit}}`,
  )
  test('precedence: an exact value, the first wildcard of the file, a key without a value', () => {
    expect(pathOf(rules, 'k=foo1')).toBe('d.k_foo1')
    expect(pathOf(rules, 'k=f.1')).toBe('d.k_f*1')
    expect(pathOf(rules, 'k=foo2,n=v')).toBe('d.k_foo*.n')
    expect(pathOf(rules, 'k=bar')).toBe('d.k')
    expect(pathOf(rules, 'l=a1b2')).toBe('d.l_a*b*')
  })

  test('matching does not backtrack', () => {
    expect(find(rules, 'k=foo2')).toBe('no-rule') // although `k` has a limit
    expect(find(rules, 'k=foo.1,n=v')).toBe('no-rule') // `f*1` is first
  })

  test('a value that equals the pattern matches it', () => {
    expect(pathOf(rules, 'k=foo*,n=v')).toBe('d.k_foo*.n')
    expect(pathOf(rules, 'k=f*1')).toBe('d.k_f*1')
  })
})

describe('counters', () => {
  test('each value has its own counter, unless a wildcard is shared', () => {
    const rules = file(
      `- {key: own, value: v*, ${limit}}`,
      `- {key: one, value: v*, share_threshold: true, descriptors: [{key: n, ${limit}}]}`,
      `- {key: any, ${limit}}`,
    )
    expect(counterOf(rules, 'own=v1')).not.toBe(counterOf(rules, 'own=v2'))
    expect(counterOf(rules, 'any=v1')).not.toBe(counterOf(rules, 'any=v2'))
    expect(counterOf(rules, 'one=v1,n=x')).toBe(counterOf(rules, 'one=v2,n=x'))
    expect(counterOf(rules, 'one=v1,n=x')).not.toBe(counterOf(rules, 'one=v1,n=y'))
  })

  test('descriptors with equal joined names have different rules and counters', () => {
    const rules = file(
      `- {key: a, value: b_c, ${limit}}`,
      `- {key: a_b, value: c, ${limit}}`,
      `- {key: x, descriptors: [{key: y, ${limit}}]}`,
    )
    expect(counterOf(rules, 'a=b_c')).not.toBe(counterOf(rules, 'a_b=c'))
    expect(counterOf(rules, 'x=1_y,y=2')).not.toBe(counterOf(rules, 'x=1,y=y_2'))
    expect(counterOf(rules, 'x=12,y=3')).not.toBe(counterOf(rules, 'x=1,y=23'))
    expect(counterOf(rules, 'x=1:2,y=3')).not.toBe(counterOf(rules, 'x=1,y=2:3'))
    expect(pathOf(rules, 'a=b_c')).toBe(pathOf(rules, 'a_b=c')) // only the names are equal
  })

  test('a changed unit starts a new counter, a changed limit does not', () => {
    const keyOf = (fields: string) => counterOf(file(`- {key: k, rate_limit: {${fields}}}`), 'k=v')
    const before = keyOf('unit: minute, requests_per_unit: 5')
    expect(keyOf('unit: hour, requests_per_unit: 5')).not.toBe(before)
    expect(keyOf('unit: minute, requests_per_unit: 9')).toBe(before)
  })

  test('have keys of one length, for any values', () => {
    const rules = file(`- {key: k, ${limit}}`)
    for (const value of ['', 'v', 'v'.repeat(100_000), 'ü\u{1f600}\0\n']) {
      expect(counterOf(rules, `k=${value}`)).toMatch(/^[A-Za-z0-9_-]{22}$/)
    }
  })
})

describe('metric names', () => {
  const shared = 'value: v*, share_threshold: true'
  const named = 'value_to_metric: true'
  const detailed = 'detailed_metric: true'
  const below = (fields: string) => `descriptors: [{key: b, ${fields}}]`
  test.each([
    ['values of a key without a value are omitted', `{key: a, ${below(limit)}}`, 'd.a.b'],
    ['value_to_metric includes the value', `{key: a, ${named}, ${below(limit)}}`, 'd.a_v1.b'],
    ['value_to_metric of the last entry', `{key: a, ${below(`${named}, ${limit}`)}}`, 'd.a.b_2'],
    ['exact values are kept', `{key: a, value: v1, ${named}, ${below(limit)}}`, 'd.a_v1.b'],
    ['wildcards are kept', `{key: a, value: v*, ${below(limit)}}`, 'd.a_v*.b'],
    [
      'value_to_metric replaces a wildcard with the value',
      `{key: a, value: v*, ${named}, ${below(limit)}}`,
      'd.a_v1.b',
    ],
    ['shared wildcards are kept', `{key: a, ${shared}, ${named}, ${below(limit)}}`, 'd.a_v*.b'],
    [
      'wildcards are kept above value_to_metric',
      `{key: a, value: v*, ${below(`${named}, ${limit}`)}}`,
      'd.a_v*.b_2',
    ],
    [
      'detailed_metric includes all values',
      `{key: a, ${below(`${detailed}, ${limit}`)}}`,
      'd.a_v1.b_2',
    ],
    [
      'detailed_metric has no effect above the limit',
      `{key: a, ${detailed}, ${below(limit)}}`,
      'd.a.b',
    ],
    [
      'detailed_metric excludes shared wildcards',
      `{key: a, ${shared}, ${below(`${detailed}, ${limit}`)}}`,
      'd.a_v*.b_2',
    ],
  ])('%s: %s', (_, descriptor, path) => {
    expect(metricOf(file(`- ${descriptor}`), 'a=v1,b=2')).toBe(path)
  })

  test('an empty value is omitted', () => {
    const rules = file(`- {key: a, ${named}, ${below(limit)}}`)
    expect(metricOf(rules, 'a=,b=2')).toBe('d.a.b')
  })

  test.each(['value_to_metric', 'detailed_metric'])('%s keeps metadata', (field) => {
    const rules = file(`- {key: k, ${field}: true, metadata: {tier: gold}, ${limit}}`)
    expect(hit(rules, 'k=v')).toMatchObject({
      metricPath: 'd.k_v',
      rules: [{ metadata: { tier: 'gold' } }],
    })
  })
})

describe('hashed values', () => {
  const sha = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
  const rules = file(
    `- {key: api_key, hashed: true, value: "${sha('secret')}", ${limit}}`,
    `- {key: api_key, hashed: true, value_to_metric: true, descriptors: [{key: n, ${limit}}]}`,
  )
  test('match by their hash, not by their plain value', () => {
    expect(pathOf(rules, 'api_key=secret')).toBe(`d.api_key_${sha('secret')}`)
    expect(find(rules, `api_key=${sha('secret')}`)).toBe('no-rule')
    expect(counterOf(rules, 'api_key=a,n=1')).not.toBe(counterOf(rules, 'api_key=b,n=1'))
  })

  test('never appear in plain text, at any depth', () => {
    const deep = file(`- {key: n, descriptors: [{key: api_key, hashed: true, ${limit}}]}`)
    const match = hit(rules, 'api_key=hidden,n=1')
    expect(match.metricPath).toBe(`d.api_key_${sha('hidden')}.n`)
    const override = { requestsPerUnit: 1, unit: 'DAY' } as const
    const entries = entriesOf('other=1,api_key=hidden')
    const matchOverride = (from: RuleSet) =>
      matchDescriptor({ rules: from, domain: 'd', descriptor: { entries, override } })
    const visible = [
      match,
      hit(deep, 'n=1,api_key=hidden'),
      matchOverride(rules),
      matchOverride(deep),
    ]
    expect(JSON.stringify(visible)).not.toContain('hidden')
  })
})

describe('a limit override of the client', () => {
  const rules = file(`- {key: k, ${limit}, shadow_mode: true}`)
  const matchOverride = (
    text: string,
    override: { requestsPerUnit: number; unit: 'DAY' | 'HOUR' },
  ) => {
    const descriptor = { entries: entriesOf(text), override }
    const match = matchDescriptor({ rules, domain: 'd', descriptor })
    if (typeof match === 'string') throw new Error(match)
    const [rule] = match.rules
    if (rule === undefined) throw new Error('no rule')
    return { ...match, rule, key: counterKey(rule, match.values) }
  }
  const ten = { requestsPerUnit: 10, unit: 'DAY' } as const

  test('overrides the rules in a domain that has rules', () => {
    expect(matchOverride('k=v', ten).rule).toMatchObject({
      path: 'd.k_v',
      limit: { requests: 10, windowUs: 86_400_000_000, denyConsumes: true },
      unit: 'DAY',
      isShadow: false,
    })
    expect(matchOverride('no=rule,k=', ten).rule.path).toBe('d.no_rule.k')
    const descriptor = { entries: entriesOf('k=v'), override: ten }
    expect(matchDescriptor({ rules, domain: 'other', descriptor })).toBe('unknown-domain')
  })

  test('has a counter per value and unit, and one metric name', () => {
    const { key, metricPath } = matchOverride('k=v', ten)
    expect(matchOverride('k=v', { ...ten, requestsPerUnit: 99 }).key).toBe(key)
    expect(matchOverride('k=v', { ...ten, unit: 'HOUR' }).key).not.toBe(key)
    expect(matchOverride('k=w', ten)).toMatchObject({ metricPath })
    const keys = ['k=w', 'l=v', 'k=v,k=v'].map((text) => matchOverride(text, ten).key)
    expect(new Set([key, counterOf(rules, 'k=v'), ...keys]).size).toBe(5)
  })

  test('has different counters for equal joined names and for different domains', () => {
    const level = rulesOf('domain: d\n').get('d')
    if (level === undefined) throw new Error('no domain')
    const two: RuleSet = new Map([
      ['d', level],
      ['d_k', level],
    ])
    const keyOf = (domain: string, text: string) => {
      const descriptor = { entries: entriesOf(text), override: ten }
      const match = matchDescriptor({ rules: two, domain, descriptor })
      if (typeof match === 'string') throw new Error(match)
      return match.rules.map((rule) => counterKey(rule, match.values)).join()
    }
    expect(keyOf('d', 'a=b_c')).not.toBe(keyOf('d', 'a_b=c'))
    expect(keyOf('d', 'x=1_y,y=2')).not.toBe(keyOf('d', 'x=1,y=y_2'))
    expect(keyOf('d', 'k_a=v')).not.toBe(keyOf('d_k', 'a=v'))
  })
})
