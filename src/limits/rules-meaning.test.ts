// The rules that the fields of a file define, and the rules in standalone.yaml.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import type { Rule } from './rule.ts'
import { matchDescriptor } from './match.ts'
import { type ParsedRuleFiles, parseRules } from './parse-rules.ts'

function parse(...contents: string[]): ParsedRuleFiles {
  const files = contents.map((text, at) => ({ name: `f${at}`, text }))
  return parseRules(files, { mergeDomains: false })
}

/** The rules of the only descriptor in a file with these lines. */
function rulesOf(...lines: string[]): readonly Rule[] {
  const body = lines.map((line) => `  ${line}\n`).join('')
  const parsed = parse(`domain: d\ndescriptors:\n- key: k\n${body}`)
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  return parsed.rules.get('d')?.any.get('k')?.rules ?? []
}

const limitOf = (fields: string) => rulesOf(`rate_limit: {${fields}}`)[0]

describe('a limit', () => {
  test('in the syntax of envoyproxy/ratelimit is a fixed window that counts denied hits', () => {
    expect(limitOf('unit: minute, requests_per_unit: 20')).toMatchObject({
      path: 'd.k',
      name: undefined,
      replaces: [],
      algorithm: { name: 'fixed_window' },
      limit: { requests: 20, windowUs: 60_000_000, burst: 20, denyConsumes: true },
      unit: 'MINUTE',
      isShadow: false,
      isQuota: false,
      onStoreError: 'local',
      metadata: undefined,
      hasDetailedMetric: false,
    })
  })

  test.each([
    ['second', 1],
    ['MINUTE', 60],
    ['Hour', 3600],
    ['day', 86_400],
    ['week', 7 * 86_400],
    ['month', 30 * 86_400],
    ['year', 365 * 86_400],
  ])('has the unit %s, in any case', (unit, seconds) => {
    const rule = limitOf(`unit: ${unit}, requests_per_unit: 1`)
    expect([rule?.unit, rule?.limit?.windowUs]).toEqual([unit.toUpperCase(), seconds * 1e6])
  })

  test.each([
    ['1ms', 1000, undefined],
    ['500ms', 500_000, undefined],
    ['30s', 30e6, undefined],
    ['60s', 60e6, 'MINUTE'],
    ['5m', 300e6, undefined],
    ['1h', 3600e6, 'HOUR'],
    ['7d', 604_800e6, 'WEEK'],
    ['366d', 366 * 86_400e6, undefined],
  ])('has the window %s', (window, windowUs, unit) => {
    const rule = limitOf(`window: ${window}, requests_per_unit: 1`)
    expect([rule?.limit?.windowUs, rule?.unit]).toEqual([windowUs, unit])
  })

  test.each(['sliding_window_log', 'sliding_window_counter', 'token_bucket', 'leaky_bucket'])(
    'of %s does not count denied hits, unless deny_consumes is set',
    (algorithm) => {
      const fields = `unit: day, requests_per_unit: 6, algorithm: ${algorithm}`
      expect(limitOf(fields)?.limit).toMatchObject({ burst: 6, denyConsumes: false })
      expect(limitOf(`${fields}, deny_consumes: on`)?.limit?.denyConsumes).toBe(true)
    },
  )

  test('of a fixed window does not count denied hits if the option denyConsumes is false', () => {
    const rule = (fields: string) => {
      const limit = `rate_limit: {unit: day, requests_per_unit: 6${fields}}`
      const files = [{ name: 'f', text: `domain: d\ndescriptors: [{key: k, ${limit}}]\n` }]
      const parsed = parseRules(files, { mergeDomains: false, denyConsumes: false })
      return 'faults' in parsed ? undefined : parsed.rules.get('d')?.any.get('k')?.rules[0]?.limit
    }
    expect(rule('')?.denyConsumes).toBe(false)
    expect(rule(', deny_consumes: true')?.denyConsumes).toBe(true)
    expect(rule(', algorithm: token_bucket')?.denyConsumes).toBe(false)
  })

  test('may have a burst above or below its requests', () => {
    const bucket = 'unit: second, requests_per_unit: 50, algorithm: token_bucket'
    expect(limitOf(`${bucket}, burst: 500`)?.limit?.burst).toBe(500)
    expect(limitOf(`${bucket}, burst: 5`)?.limit?.burst).toBe(5)
  })

  test('may be unlimited, for any number of requests', () => {
    const rule = limitOf('unlimited: true, requests_per_unit: 5, name: free')
    expect(rule).toMatchObject({ limit: undefined, unit: undefined, name: 'free' })
  })

  test('accepts the number formats of envoyproxy/ratelimit', () => {
    const numbers = ['0', '1_000', '0x10', '010', '4294967295'].map(
      (number) => limitOf(`unit: day, requests_per_unit: ${number}`)?.limit?.requests,
    )
    expect(numbers).toEqual([0, 1000, 16, 8, 4_294_967_295])
  })
})

test('a list of limits, under either name, shares the settings of the descriptor', () => {
  const list = '[{unit: second, requests_per_unit: 10, name: a}, {window: 10s, name: b}]'
  for (const field of ['rate_limit', 'rate_limits']) {
    const rules = rulesOf(`${field}: ${list}`, 'shadow_mode: true', 'metadata: {tier: gold}')
    expect(rules.map(({ name, isShadow, metadata }) => [name, isShadow, metadata])).toEqual([
      ['a', true, { tier: 'gold' }],
      ['b', true, { tier: 'gold' }],
    ])
    expect(new Set(rules.map(({ identity }) => identity)).size).toBe(2)
  }
})

test('keys and values are strings as written, even if YAML reads numbers or flags', () => {
  const text = 'domain: 1_0\ndescriptors: [{key: yes, value: 0x1F}, {key: ip, value: 10.0.0.1}]\n'
  const parsed = parse(text)
  if ('faults' in parsed) throw new Error('rejected')
  const level = parsed.rules.get('1_0')
  expect(level?.exact.get('yes')?.has('0x1F')).toBe(true)
  expect(level?.exact.get('ip')?.has('10.0.0.1')).toBe(true)
})

test('metadata is preserved at any depth', () => {
  const rule = rulesOf(
    'rate_limit: {unlimited: true}',
    'metadata: {a: {b: [1, 2.5, yes, ~, {c: text}]}, 7: 2026-01-01}',
  )[0]
  expect(rule?.metadata).toEqual({
    a: { b: [1, 2.5, true, null, { c: 'text' }] },
    7: '2026-01-01',
  })
  expect(rulesOf('rate_limit: {unlimited: true}', 'metadata: {}')[0]?.metadata).toBeUndefined()
})

describe('identity of a rule', () => {
  const identityOf = (fields: string) => limitOf(fields)?.identity

  test('does not depend on its requests, name and on_store_error', () => {
    expect(identityOf('unit: hour, requests_per_unit: 5')).toBe(
      identityOf('window: 1h, requests_per_unit: 50, name: x, on_store_error: deny'),
    )
  })

  test('depends on window and algorithm, so that a change starts a new counter', () => {
    const identities = [
      'unit: minute, requests_per_unit: 5',
      'unit: hour, requests_per_unit: 5',
      'unit: minute, requests_per_unit: 5, algorithm: token_bucket',
    ].map(identityOf)
    expect(new Set(identities).size).toBe(3)
  })
})

test('standalone.yaml has the limits of the contract', () => {
  const text = readFileSync(new URL('standalone.yaml', import.meta.url), 'utf8')
  const parsed = parse(text)
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  expect(parsed.warnings).toEqual([])
  const described = [
    ['create', 'client', '192.0.2.1'],
    ['create', 'api_key', 'shop'],
    ['redirect', 'client', '192.0.2.1'],
    ['unknown', 'client', '192.0.2.1'],
  ] as const
  const found = described.map(([route, key, value]) => {
    const entries = [
      { key: 'route', value: route },
      { key, value },
    ]
    const match = matchDescriptor({
      rules: parsed.rules,
      domain: 'curtail',
      descriptor: { entries },
    })
    if (typeof match === 'string') return match
    const [rule, ...more] = match.rules
    expect(more).toEqual([])
    const { requests, windowUs, burst } = rule?.limit ?? {}
    return [rule?.name, rule?.algorithm.name, requests, windowUs, burst, ...(rule?.replaces ?? [])]
  })
  expect(found).toEqual([
    ['creates-per-client', 'token_bucket', 50, 1_000_000, 500],
    ['creates-per-api-key', 'token_bucket', 20, 1_000_000, 200, 'creates-per-client'],
    ['redirects-per-client', 'token_bucket', 5000, 1_000_000, 10_000],
    ['unknown-codes-per-client', 'sliding_window_counter', 600, 60_000_000, 600],
  ])
})
