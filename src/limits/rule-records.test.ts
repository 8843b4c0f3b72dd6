// Records of rules: plain values from which another thread builds an equal set of rules.
import { describe, expect, test } from '@jest/globals'
import { rulesOf } from '../../test/kit/rules-file.ts'
import { matchDescriptor } from './match.ts'
import { parseRules } from './parse-rules.ts'
import type { RuleSet } from './rule.ts'
import { recordsOf, RuleBuilder, type RuleRecord } from './rule-records.ts'
import { countDescriptors, hasRules, listRules, noDescriptors } from './rule-tree.ts'

const rules = rulesOf(`
domain: shop
descriptors:
  - key: path
    value: /a*
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 3}
    descriptors:
      - {key: user, rate_limit: {unit: minute, requests_per_unit: 4}}
      - key: secret
        hashed: true
        metadata: {a: [1, {b: null}]}
        rate_limit: {unit: day, requests_per_unit: 1}
  - {key: path, value: /b, value_to_metric: true, rate_limit: {unlimited: true}}
  - {key: path, value: '/*', rate_limit: {unit: minute, requests_per_unit: 5}}
  - key: path
    detailed_metric: true
    rate_limits:
      - {algorithm: token_bucket, unit: second, requests_per_unit: 3, burst: 9, name: x}
      - {window: 90s, requests_per_unit: 3, replaces: [{name: x}], on_store_error: deny}
  - {key: plan, value: free, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: plan, value: paid, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 7}}
  - {key: token, hashed: true, rate_limit: {unit: hour, requests_per_unit: 6}}
  - {key: empty, value: x}
`)

function build(records: Iterable<RuleRecord>): RuleSet {
  const builder = new RuleBuilder()
  for (const record of records) builder.add(record)
  return builder.rules
}

describe('a set built from its records', () => {
  const records = structuredClone([...recordsOf(rules)]) // as a message to another thread
  const built = build(records)

  test('equals the original, in the same order', () => {
    expect(built).toEqual(rules)
    expect(listRules(built)).toEqual(listRules(rules))
    expect(listRules(built)).toHaveLength(10)
    const [before, after] = [rules.get('shop'), built.get('shop')]
    expect(after?.wildcards.map(({ node }) => node.value)).toEqual(['/a*', '/*'])
    expect([...(after?.exact.keys() ?? [])]).toEqual([...(before?.exact.keys() ?? [])])
  })

  test('has a record for the domain and for each descriptor, after that of its parent', () => {
    expect(records.map(({ domain, node, parent }) => [domain ?? node?.path, parent])).toEqual([
      ['shop', -1],
      ['shop.path_/a*', 0],
      ['shop.path_/a*.user', 1],
      ['shop.path_/a*.secret', 1],
      ['shop.path_/b', 0],
      ['shop.path_/*', 0],
      ['shop.plan_free', 0],
      ['shop.plan_paid', 0],
      ['shop.empty_x', 0],
      ['shop.path', 0],
      ['shop.token', 0],
    ])
  })

  test('shares one level between the descriptors without children', () => {
    expect(built.get('shop')?.any.get('path')?.children).toBe(noDescriptors)
    expect(records.filter(({ children }) => children !== undefined)).toHaveLength(2)
  })

  test.each(['/a1', '/b', '/c'])('decides about path=%s by the same rules', (value) => {
    const descriptor = { entries: [{ key: 'path', value }] }
    const pathsIn = (set: RuleSet) => {
      const match = matchDescriptor({ rules: set, domain: 'shop', descriptor })
      return typeof match === 'string' ? match : match.rules.map(({ path }) => path)
    }
    expect(pathsIn(built)).toEqual(pathsIn(rules))
  })

  test('hashes the values of the same keys', () => {
    const level = built.get('shop')
    expect([...(level?.hashedKeys ?? [])]).toEqual(['token'])
    expect([...(level?.hashedKeysInSubtree ?? [])].sort()).toEqual(['secret', 'token'])
  })

  test('counts its descriptors', () => {
    expect(countDescriptors(built)).toBe(10)
    expect(countDescriptors(rulesOf('domain: d'))).toBe(0)
  })

  test('has rules if a level has one at any depth', () => {
    const hasAny = (text: string) => hasRules(rulesOf(text).get('d') ?? noDescriptors)
    const limit = 'rate_limit: {unit: day, requests_per_unit: 1}'
    expect(hasAny('domain: d\ndescriptors: [{key: a}]')).toBe(false)
    expect(hasAny(`domain: d\ndescriptors: [{key: a, descriptors: [{key: b, ${limit}}]}]`)).toBe(
      true,
    )
  })
})

test('a domain without descriptors stays in the set', () => {
  const empty = rulesOf('domain: d')
  expect(build(recordsOf(empty))).toEqual(empty)
})

test('descriptors below several others, in several domains, stay below them', () => {
  const limit = 'rate_limit: {unit: day, requests_per_unit: 1}'
  const pair = (key: string) =>
    `{key: ${key}, descriptors: [{key: x, ${limit}}, {key: y, ${limit}}]}`
  const files = ['d', 'e'].map((domain) => ({
    name: `${domain}.yaml`,
    text: `domain: ${domain}\ndescriptors: [${pair('a')}, ${pair('b')}, ${pair('c')}]`,
  }))
  const parsed = parseRules(files, { mergeDomains: false })
  if ('faults' in parsed) throw new Error('the rules have faults')
  expect(build(recordsOf(parsed.rules))).toEqual(parsed.rules)
})

describe('records that no set has', () => {
  const [domain, first, child] = recordsOf(rules)

  test('a descriptor without the level of its parent', () => {
    const leaf = { ...first, children: undefined } as unknown as RuleRecord
    const records = [domain, leaf, child] as RuleRecord[]
    expect(() => build(records)).toThrow('Cannot add a rule: level 1 does not exist')
    expect(() => build(records.slice(1))).toThrow('Cannot add a rule: level 0 does not exist')
  })

  test('an unknown algorithm', () => {
    const [rule] = first?.rules ?? []
    const unknown = { ...first, rules: [{ ...rule, algorithm: 'guess' }] }
    expect(() => build([domain, unknown] as RuleRecord[])).toThrow(
      'Cannot add a rule: the algorithm guess does not exist',
    )
  })
})
