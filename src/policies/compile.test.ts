// The compiler: examples, the sentence of each rejection, and its bounds.
import { expect, test } from '@jest/globals'
import { GRANTS, LIMIT, policy, rulesOf } from '../../test/kit/policies/random-policies.ts'
import { listRules } from '../limits/rule-tree.ts'
import { compile, POLICIES_BYTES_MAX } from './compile.ts'
import type { Policy, PolicySpec } from './policy.ts'

const outcomeOf = (policies: readonly Policy[], id: string) =>
  compile(policies, GRANTS).outcomes.get(id)

test('policies are merged into one tree for each domain, with all their fields', () => {
  const bucket = { name: 'creates', algorithm: 'TokenBucket', requests: 2, window: '1s', burst: 20 }
  const compiled = compile(
    [
      policy('shop/clients', {
        match: [{ key: 'route', value: 'create' }, { key: 'client' }],
        limits: [bucket, { ...LIMIT, name: 'hourly', window: '1h' }],
        onStoreError: 'Deny',
      }),
      policy('shop/total', { match: [{ key: 'route', value: 'create' }], mode: 'Audit' }),
      policy('shop/vip', {
        match: [
          { key: 'route', value: 'create' },
          { key: 'client', value: 'vip' },
        ],
        limits: [{ name: 'vip', algorithm: 'FixedWindow', unlimited: true }],
        replaces: ['creates'],
      }),
      policy('b/own', { domain: 'own' }),
    ],
    GRANTS,
  )
  for (const outcome of compiled.outcomes.values()) expect(outcome).toEqual({ accepted: true })
  const rules = listRules(rulesOf(compiled)).map((rule) => ({
    ...rule,
    algorithm: rule.algorithm.name,
  }))
  const create = { path: 'shop.route_create', isShadow: false, onStoreError: 'local' }
  expect(rules).toMatchObject([
    { path: 'own.client', name: 'l' },
    { ...create, name: 'l', isShadow: true, limit: { requests: 5, windowUs: 60_000_000 } },
    { path: `${create.path}.client_vip`, limit: undefined, name: 'vip', replaces: ['creates'] },
    {
      ...{ path: `${create.path}.client`, name: 'creates', algorithm: 'token_bucket' },
      ...{ limit: { requests: 2, windowUs: 1_000_000, burst: 20 }, onStoreError: 'deny' },
    },
    { path: `${create.path}.client`, name: 'hourly', algorithm: 'fixed_window' },
  ])
})

test('of two policies with one match, the older is accepted, and the other names it', () => {
  const both = [policy('shop/a', {}, 2), policy('shop/b', {}, 1)]
  expect(outcomeOf(both, 'shop/b')).toEqual({ accepted: true })
  expect(outcomeOf(both, 'shop/a')).toEqual({
    ...{ accepted: false, reason: 'Conflicted' },
    message:
      'the older policy shop/b has the same spec.match in domain "shop": change or delete one',
  })
})

test('two values that are equal in UTF-8 conflict', () => {
  const keys = ['\ud800', '\ufffd']
  const policies = keys.map((key, at) => policy(`shop/${at}`, { match: [{ key }] }, at))
  expect(listRules(rulesOf(compile(policies, GRANTS)))).toHaveLength(1)
  expect(outcomeOf(policies, 'shop/1')).toMatchObject({ reason: 'Conflicted' })
})

test('in a domain of several namespaces, replaces finds only limits of its own namespace', () => {
  const match = [{ key: 'tenant', value: 'a' }]
  const other = [{ key: 'client' }]
  const policies = [
    policy('platform/p', { domain: 'edge', limits: [{ ...LIMIT, name: 'all' }], match: other }),
    policy('a/squat', { match, limits: [{ ...LIMIT, name: 'all' }] }),
    policy('a/evade', { match: [...match, { key: 'x' }], replaces: ['all'] }),
  ]
  const rules = listRules(rulesOf(compile(policies, GRANTS)))
  expect(rules.map(({ name }) => name).sort()).toEqual(['a/all', 'a/l', 'platform/all'])
  expect(rules.flatMap(({ replaces }) => replaces)).toEqual(['a/all'])
  const cause = 'no accepted policy of this namespace has a limit "all" in domain "edge"'
  const message = `spec.replaces has an unknown name: ${cause}`
  expect(outcomeOf(policies.slice(2), 'a/evade')).toEqual({ accepted: true, message })
})

test('of several values with *, the limiter uses the longest', () => {
  const values = ['a*', 'abc*', 'ab*']
  const policies = values.map((value) =>
    policy(`shop/${value.length}`, { match: [{ key: 'path', value }] }),
  )
  const { wildcards = [] } = rulesOf(compile(policies, GRANTS)).get('shop') ?? {}
  expect(wildcards.map(({ node }) => node.value)).toEqual(['abc*', 'ab*', 'a*'])
})

const long = Array.from({ length: 33 }, () => ({ key: 'k' }))
test.each<readonly [string, Partial<PolicySpec>, string, string]>([
  ['x/p', {}, 'NotAllowed', 'namespace x may not write to any domain'],
  ['a/p', { domain: 'shop' }, 'NotAllowed', 'it may write to "edge"'],
  ['a/p', {}, 'NotAllowed', 'spec.match must start with "tenant=a" in domain "edge"'],
  ['a/p', { match: [{ key: 'tenant' }] }, 'NotAllowed', 'spec.match must start with "tenant=a"'],
  ['b/p', {}, 'Invalid', 'spec.domain is required, because namespace b may write to several'],
  ['shop/p', { match: [] }, 'Invalid', 'spec.match must have 1 to 32 entries: it has 0'],
  ['shop/p', { match: long }, 'Invalid', 'spec.match must have 1 to 32 entries: it has 33'],
  ['shop/p', { match: [{ key: 'a*' }] }, 'Invalid', "spec.match[0]: a key cannot contain '*'"],
  ['shop/p', { match: [{ key: 'a' }, { key: '' }] }, 'Invalid', 'spec.match[1]: descriptor has'],
  ['shop/p', { limits: [] }, 'Invalid', 'must have 1 to 8 limits: it has 0'],
  [
    'shop/p',
    { limits: [LIMIT, { ...LIMIT, algorithm: 'SlidingWindowLog', requests: 20_000 }] },
    'Invalid',
    "spec.limits[1]: requests must be a whole number from 0 to 10000: it is a number '20000'",
  ],
  [
    'shop/p',
    { limits: [{ ...LIMIT, algorithm: 'LeakyBucket', requests: 4_294_967_291, window: '366d' }] },
    'Invalid',
    'spec.limits[0]: leaky_bucket cannot count 4294967291 per window exactly: choose a rounder',
  ],
  ['shop/p', { replaces: ['l'] }, 'Invalid', 'replaces should not contain name of same'],
])('the policy %s with %j is %s: %s', (id, spec, ...expected) => {
  const outcome = outcomeOf([policy(id, spec)], id)
  const [reason, message] = expected
  expect(outcome).toMatchObject({ reason, message: expect.stringContaining(message) })
})

test('a namespace with too many policies exceeds only its own share', () => {
  const limit = (at: number) => ({ name: `${at}`, algorithm: 'FixedWindow', unlimited: true })
  const many = Array.from({ length: 1000 }, (_, at) =>
    policy(
      `a/${at}`,
      {
        match: [
          { key: 'tenant', value: 'a' },
          ...Array.from({ length: 7 }, () => ({ key: 'k', value: `${at}` })),
        ],
        limits: Array.from({ length: at % 2 === 0 ? 8 : 1 }, (__, index) => limit(index)),
        replaces: Array.from({ length: at % 2 === 0 ? 16 : 0 }, (__, index) => `r${index}`),
      },
      at,
    ),
  )
  const victim = policy('b/v', { domain: 'own' }, 10_000)
  const compiled = compile([...many, victim], GRANTS)
  expect(compiled.outcomes.get('b/v')).toEqual({ accepted: true })
  expect(rulesOf(compiled).has('own')).toBe(true)
  const rejected = [...compiled.outcomes.values()].filter(({ accepted }) => !accepted)
  expect(rejected[0]).toMatchObject({
    reason: 'TooMany',
    message: expect.stringMatching(/^the policies of namespace a must have at most 917504 bytes/),
  })
  const bytes = compiled.resources.reduce((sum, resource) => sum + resource.length, 0)
  expect(bytes).toBeLessThan(POLICIES_BYTES_MAX / 4)
})

test('1,000 policies in 20 namespaces are compiled and parsed within 500 ms', () => {
  const names = Array.from({ length: 20 }, (_, at) => `n${at}`)
  const grants = names.map((name) => ({
    ...{ domain: 'edge', namespaces: [name], below: { key: 'tenant', value: name } },
  }))
  const policies = Array.from({ length: 1000 }, (_, at) => {
    const value = `n${at % 20}`
    const match = [{ key: 'tenant', value }, { key: 'route', value: `${at}` }, { key: 'client' }]
    const limit = { name: `l${at}`, algorithm: 'TokenBucket', requests: 2, window: '1s', burst: 20 }
    return policy(`${value}/p${at}`, { match, limits: [limit] }, at)
  })
  const times = Array.from({ length: 3 }, () => {
    const started = process.cpuUsage()
    expect(listRules(rulesOf(compile(policies, grants)))).toHaveLength(1000)
    const { user, system } = process.cpuUsage(started)
    return (user + system) / 1000
  })
  const ms = Math.min(...times)
  expect(ms).toBeLessThan(500)
})
