// The compiler: examples, the message of each rejection, and its bounds.
import { expect, test } from '@jest/globals'
import { GRANTS, LIMIT, policy, rulesOf } from '../../test/kit/policies/random-policies.ts'
import { listRules } from '../limits/rule-tree.ts'
import { compile, createCompiler, POLICIES_MAX } from './compile.ts'
import type { DomainGrant, Policy, PolicySpec } from './policy.ts'
import { SHARE_BYTES } from './shares.ts'

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

test('of two policies with the same match, the older is accepted; the message names it', () => {
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
  ['x/p', {}, 'NotAllowed', 'namespace x is not allowed to write to any domain'],
  ['a/p', { domain: 'shop' }, 'NotAllowed', 'it may write to "edge"'],
  ['a/p', {}, 'NotAllowed', 'spec.match must start with "tenant=a" in domain "edge"'],
  [
    'a/p',
    { match: [{ key: 'tenant' }] },
    'NotAllowed',
    'namespace a may write only below this entry',
  ],
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

test('with several granted first entries, the message lists them', () => {
  const grants = ['a', 'b'].map((value) => ({
    ...{ domain: 'd', namespaces: ['n'], below: { key: 'tenant', value } },
  }))
  expect(compile([policy('n/p')], grants).outcomes.get('n/p')).toMatchObject({
    message:
      'spec.match must start with one of "tenant=a", "tenant=b" in domain "d": ' +
      'namespace n may write only below these entries',
  })
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
  const message = `the policies of namespace a exceed their share of ${SHARE_BYTES} bytes: this`
  expect(rejected[0]).toMatchObject({
    reason: 'TooMany',
    message: expect.stringContaining(message),
  })
  const bytes = compiled.resources.reduce((sum, resource) => sum + resource.length, 0)
  expect(bytes).toBeGreaterThan(SHARE_BYTES / 4)
  expect(bytes).toBeLessThan(2 * SHARE_BYTES) // with the policy of the namespace b
})

test('a further namespace does not change the share of the others', () => {
  const grant = { domain: 'd', namespaces: ['n'] }
  const policies = Array.from({ length: 500 }, (_, at) =>
    policy(`n/${at}`, { match: [{ key: 'k', value: `${at}` }] }, at),
  )
  const acceptedWith = (...grants: Parameters<typeof compile>[1]) =>
    [...compile(policies, grants).outcomes.values()].filter(({ accepted }) => accepted).length
  const alone = acceptedWith(grant)
  expect(alone).toBeLessThan(500)
  expect(acceptedWith(grant, { domain: 'e', namespaces: ['m', 'o'] })).toBe(alone)
  expect(acceptedWith({ ...grant, bytes: 10 * SHARE_BYTES })).toBe(500)
})

const LARGE = { match: [{ key: 'client' }, { key: 'k'.repeat(150) }, { key: 'l'.repeat(150) }] }
const small: readonly DomainGrant[] = [{ domain: 'd', namespaces: ['n', 'm'], bytes: 1000 }]
/** A policy that was accepted with another spec; `n/p` is older than the others. */
const edited = (id: string, spec: Partial<PolicySpec>, before: Partial<PolicySpec>) => {
  const last = { ...policy(id, before).spec, domain: 'd' }
  const accepted = { generation: 1, spec: last }
  return { ...policy(id, spec, id === 'n/p' ? 0 : 1), generation: 2, accepted }
}

test.each<readonly [string, Partial<PolicySpec>]>([
  ['Invalid', { match: [{ key: 'a*' }] }],
  ['NotAllowed', { domain: 'other' }],
  ['Conflicted', { match: [{ key: 'older' }] }],
  ['TooMany', { match: [...LARGE.match, { key: 'm'.repeat(250) }, { key: 'n'.repeat(250) }] }],
])('an accepted policy whose edit is %s keeps its last accepted spec', (reason, spec) => {
  const older = policy('n/older', { match: [{ key: 'older' }] })
  const policies = [older, edited('n/p', spec, {})]
  const compiled = compile(policies, small)
  expect(compiled.outcomes.get('n/p')).toMatchObject({ accepted: false, reason })
  expect(compiled.active.get('n/p')?.generation).toBe(1)
  const same = compile([older, policy('n/p', {}, 1)], small)
  expect(compiled.version).toBe(same.version)
})

test('the last accepted spec is removed if it lost its grant or an older policy conflicts', () => {
  const invalid = edited('n/p', { limits: [] }, {})
  const elsewhere = [{ domain: 'e', namespaces: ['n'] }]
  expect([...compile([invalid], elsewhere).active]).toEqual([])
  const below = [{ ...small[0], below: { key: 'tenant', value: 'n' } } as DomainGrant]
  expect([...compile([invalid], below).active]).toEqual([])
  const { active } = compile([policy('m/older'), invalid], small)
  expect([...active.keys()]).toEqual(['m/older'])
})

test('a policy conflicts with the active generation of an older one', () => {
  const older = edited('n/p', { limits: [] }, {})
  const { outcomes, active } = compile([older, policy('m/q', {}, 1)], small)
  expect([...active.keys()]).toEqual(['n/p'])
  expect(outcomes.get('m/q')).toMatchObject({
    reason: 'Conflicted',
    message: expect.stringMatching(/^generation 1 of the older policy n\/p, which stays active,/),
  })
})

test('an edit does not use the bytes of younger policies that are accepted', () => {
  const match = [{ key: 'y'.repeat(250) }, { key: 'z'.repeat(200) }]
  const larger = edited('n/p', LARGE, {})
  const outcomeWith = (younger: Policy) => compile([larger, younger], small)
  const unchanged = outcomeWith(edited('n/y', { match }, { match }))
  expect(unchanged.outcomes.get('n/p')).toMatchObject({ reason: 'TooMany' })
  expect([...unchanged.active].map(([id, { generation }]) => [id, generation])).toEqual([
    ['n/p', 1],
    ['n/y', 2],
  ])
  const accepted = { accepted: true }
  expect(compile([larger], small).outcomes.get('n/p')).toEqual(accepted)
  // If the younger one becomes smaller at the same time, the larger one is accepted.
  const released = outcomeWith(edited('n/y', { match: [{ key: 'y' }] }, { match }))
  expect([...released.outcomes.values()]).toEqual([accepted, accepted])
})

test('a policy without a domain keeps its domain when its namespace may write to others', () => {
  const { spec } = policy('n/p')
  const accepted = { generation: 1, spec: { ...spec, domain: 'd' } }
  const grants = ['d', 'e'].map((domain) => ({ domain, namespaces: ['n'] }))
  const unchanged = { ...policy('n/p'), accepted }
  expect(compile([unchanged], grants).outcomes.get('n/p')).toEqual({ accepted: true })
  expect(compile([unchanged], grants).active.get('n/p')).toEqual(accepted)
  const { outcomes, active } = compile([{ ...unchanged, generation: 2 }], grants)
  expect(outcomes.get('n/p')).toMatchObject({ reason: 'Invalid' })
  expect(active.get('n/p')).toEqual(accepted)
  const moved = compile([unchanged], grants.slice(1))
  expect(moved.active.get('n/p')?.spec.domain).toBe('e')
})

test('if a namespace has more than 1,000 policies, the youngest are rejected', () => {
  const grants = [{ domain: 'd', namespaces: ['n', 'm'] }]
  const invalid = Array.from({ length: POLICIES_MAX + 5 }, (_, at) =>
    policy(`n/${at}`, { limits: [] }, at),
  )
  const { outcomes } = compile([policy('m/p', {}, 1e6), ...invalid.toReversed()], grants)
  const tooMany = [...outcomes].filter(([, outcome]) => outcome.message?.includes('has 1000 older'))
  expect(tooMany.map(([id]) => id)).toEqual(invalid.slice(-5).map(({ uid }) => uid))
  expect(outcomes.get('m/p')).toEqual({ accepted: true })
})

test('1,000 policies in 20 namespaces: only changed ones are checked', () => {
  const names = Array.from({ length: 20 }, (_, at) => `n${at}`)
  const grants = names.map((name) => ({
    ...{ domain: 'edge', namespaces: [name], below: { key: 'tenant', value: name } },
  }))
  const policies = () =>
    Array.from({ length: 1000 }, (_, at) => {
      const value = `n${at % 20}`
      const match = [{ key: 'tenant', value }, { key: 'route', value: `${at}` }, { key: 'client' }]
      const bucket = { algorithm: 'TokenBucket', requests: 2, window: '1s', burst: 20 }
      return policy(`${value}/p${at}`, { match, limits: [{ name: `l${at}`, ...bucket }] }, at)
    })
  const compiler = createCompiler(grants)
  const msOf = (all: readonly Policy[], run = compiler) => {
    const started = process.cpuUsage()
    expect(run(all).active.size).toBe(1000)
    const { user, system } = process.cpuUsage(started)
    return (user + system) / 1000
  }
  expect(listRules(rulesOf(compiler(policies())))).toHaveLength(1000)
  const unchanged = Math.min(...Array.from({ length: 5 }, () => msOf(policies())))
  const checked = Math.min(
    ...Array.from({ length: 5 }, () => msOf(policies(), createCompiler(grants))),
  )
  expect(unchanged).toBeLessThan(checked / 1.5)
  expect(checked).toBeLessThan(500)
})
