// Policies with API keys: the rules of the limiter, conflicts between kinds of values, and bounds.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { policy as createPolicy, rulesOf } from '../../test/kit/policies/random-policies.ts'
import { matchDescriptor } from '../limits/match.ts'
import { compile } from './compile.ts'
import type { ApiKeys, DomainGrant, Policy, PolicyEntry, PolicySpec } from './policy.ts'

const GRANTS: readonly DomainGrant[] = [
  { domain: 'shop', namespaces: ['shop'], apiKeys: true },
  { domain: 'shop', namespaces: ['other'] },
]
const LIMIT = { name: 'per-client', algorithm: 'FixedWindow', requests: 5, window: '1m' }
const hashOf = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
const keys = (...all: string[]): ApiKeys => ({ hashes: all.map(hashOf).sort() })
const create = { key: 'route', value: 'create' }
const gold = { key: 'api_key', secretSelector: { matchLabels: { tier: 'gold' } } }
const partner = { key: 'api_key', secretRef: { name: 'partners' } }

type Given = Partial<PolicySpec> & { readonly createdMs?: number; readonly apiKeys?: ApiKeys }
const policy = (id: string, { createdMs, apiKeys, ...spec }: Given = {}): Policy => ({
  ...createPolicy(id, spec, createdMs),
  ...(apiKeys && { apiKeys }),
})
const withKeys = (id: string, apiKeys: ApiKeys, given: Given = {}) =>
  policy(id, { match: [create, partner], limits: [{ ...LIMIT, name: 'k' }], apiKeys, ...given })
const outcomesOf = (policies: readonly Policy[]) => compile(policies, GRANTS).outcomes
const matchOf = (policies: readonly Policy[], api_key: string) => {
  const entries = Object.entries({ route: 'create', api_key })
  const descriptor = { entries: entries.map(([key, value]) => ({ key, value })), hits: 1 }
  const rules = rulesOf(compile(policies, GRANTS))
  const match = matchDescriptor({ rules, domain: 'shop', descriptor })
  return typeof match === 'string' ? match : match.rules[0]
}

test('each API key has its own rule, with only the hash of the key', () => {
  const limits = [{ ...LIMIT, name: 'per-key', requests: 100 }]
  const spec: Partial<PolicySpec> = { match: [create, partner], limits, replaces: ['per-client'] }
  const policies = [
    policy('shop/clients', { match: [create, { key: 'client' }], limits: [LIMIT] }),
    policy('shop/keys', { ...spec, apiKeys: keys('one', 'two') }),
  ]
  const path = 'shop.route_create.api_key_'
  const rule = { name: 'shop/per-key', replaces: ['shop/per-client'], limit: { requests: 100 } }
  expect(matchOf(policies, 'one')).toMatchObject({ ...rule, path: path + hashOf('one') })
  expect(matchOf(policies, 'two')).toMatchObject({ ...rule, path: path + hashOf('two') })
  expect(matchOf(policies, 'three')).toBe('no-rule')
  expect(matchOf(policies, hashOf('one'))).toBe('no-rule')
  const message = 'the limiters receive the policy with 2 API keys'
  expect(outcomesOf(policies).get('shop/keys')).toEqual({ accepted: true, message })
})

test('without keys, the policy is valid and its limits apply to no request', () => {
  const problem = { reason: 'SecretNotFound', message: 'Secret "partners" not found' } as const
  const policies = [withKeys('shop/keys', { hashes: [], problem })]
  expect(outcomesOf(policies).get('shop/keys')).toEqual({
    ...{ accepted: true, reason: 'SecretNotFound' },
    message: 'the limiters receive the policy with 0 API keys; Secret "partners" not found',
  })
  expect(matchOf(policies, 'one')).toBe('no-rule')
})

test('a policy without keys is checked as if it had keys', () => {
  const limits = [{ ...LIMIT, algorithm: 'SlidingWindowLog', requests: 20_000 }]
  const outcomes = outcomesOf([policy('shop/keys', { match: [partner], limits, apiKeys: keys() })])
  expect(outcomes.get('shop/keys')).toMatchObject({ accepted: false, reason: 'Invalid' })
})

test('an entry without a value matches all other keys, and each has its own counters', () => {
  const any = policy('shop/any', { match: [create, { key: 'api_key' }], limits: [LIMIT] })
  const policies = [any, withKeys('shop/keys', keys('one'), { createdMs: 1 })]
  expect(matchOf(policies, 'one')).toMatchObject({ name: 'shop/k' })
  expect(matchOf(policies, 'two')).toMatchObject({ name: 'shop/per-client' })
  const revoked = rulesOf(compile([any, withKeys('shop/keys', keys(), { createdMs: 1 })], GRANTS))
  const node = revoked.get('shop')?.exact.get('route')?.get('create')
  expect(node?.children.hashedKeys).toEqual(new Set(['api_key'])) // no output shows the values
})

test.each([
  ['the value', { value: 'plain' }],
  ['the wildcard', { value: 'p*' }],
])('%s of one policy and the API keys of another conflict: the older is accepted', (_, entry) => {
  const plain = (createdMs: number) =>
    policy('shop/plain', { match: [create, { key: 'api_key', ...entry }], createdMs })
  const other = (name: string, [theirs, own]: readonly [string, string]) =>
    `the older policy shop/${name} matches ${theirs} of the key "api_key" in domain "shop", ` +
    `and this one ${own}: after the same entries, a key can match only one kind`
  const rejected = { accepted: false, reason: 'Conflicted' }
  const keysFirst = outcomesOf([withKeys('shop/keys', keys('one')), plain(1)])
  expect(keysFirst.get('shop/plain')).toEqual({
    ...rejected,
    message: other('keys', ['API keys', 'plain values']),
  })
  const plainFirst = outcomesOf([withKeys('shop/keys', keys('one'), { createdMs: 1 }), plain(0)])
  expect(plainFirst.get('shop/keys')).toEqual({
    ...rejected,
    message: other('plain', ['plain values', 'API keys']),
  })
})

test('each path has its own API keys and kind of values', () => {
  const at = (value: string, last: PolicyEntry) => ({ match: [{ key: 'route', value }, last] })
  const message = 'the limiters receive the policy with 1 API key'
  const outcomes = outcomesOf([
    withKeys('shop/a', keys('one'), at('a', partner)),
    withKeys('shop/b', keys('one'), at('b', partner)),
    policy('shop/c', at('c', { key: 'api_key', value: 'plain' })),
  ])
  const withOne = { accepted: true, message }
  expect([...outcomes.values()]).toEqual([withOne, withOne, { accepted: true }])
})

test('an API key in two Secrets belongs to the older policy', () => {
  const three = keys('one', 'two', 'three')
  const policies = [
    withKeys('shop/younger', three, { match: [create, gold], createdMs: 1 }),
    withKeys('shop/older', keys('two', 'three')),
  ]
  expect(outcomesOf(policies).get('shop/younger')).toEqual({
    accepted: true,
    message:
      'the limiters receive the policy with 1 API key; ' +
      '2 more belong to older policies, such as shop/older',
  })
  expect(() => rulesOf(compile(policies, GRANTS))).not.toThrow()
  const same = [withKeys('shop/a', keys('one')), withKeys('shop/b', keys('one'), { createdMs: 1 })]
  expect(outcomesOf(same).get('shop/b')).toMatchObject({ reason: 'Conflicted' })
})

const lastEntries = fc.constantFrom<PolicyEntry[]>(
  ...[partner, partner, gold, gold],
  ...[{ key: 'api_key' }, { key: 'api_key', value: 'a' }, { key: 'api_key', value: 'a*' }],
  ...[{ key: 'client' }, { key: 'client', value: hashOf('a') }],
)
const worlds = fc.array(
  fc.record({
    above: fc.constantFrom([], [], [{ key: 'api_key', value: 'a' }], [{ key: 'api_key' }]),
    last: lastEntries,
    below: fc.constantFrom([], [], [{ key: 'x' }]),
    hashes: fc.uniqueArray(fc.constantFrom(...['a', 'b', 'c'].map(hashOf))),
    createdMs: fc.integer({ min: 0, max: 3 }),
  }),
  { maxLength: 12 },
)

test('the limiter accepts all mixtures of values and keys; their order has no effect', () => {
  let conflicts = 0
  let shared = 0
  fc.assert(
    fc.property(
      worlds.chain((world) => {
        const all = world.map(({ above, last, below, hashes, createdMs }, at) => {
          const match = [...above, last, ...below]
          const apiKeys = { hashes: hashes.toSorted() }
          return policy(`shop/${at}`, { match, createdMs, apiKeys })
        })
        const options = { minLength: all.length }
        return fc.tuple(fc.constant(all), fc.shuffledSubarray([...all], options))
      }),
      ([all, shuffled]) => {
        const compiled = compile(all, GRANTS)
        rulesOf(compiled)
        expect(compile(shuffled, GRANTS)).toEqual(compiled)
        for (const { message = '' } of compiled.outcomes.values()) {
          if (message.includes('can match only one kind')) conflicts++
          if (message.includes('belong to older policies')) shared++
        }
      },
    ),
    { numRuns: 200 },
  )
  expect(Math.min(conflicts, shared)).toBeGreaterThan(0) // both are tried
})

test.each<readonly [string, readonly PolicyEntry[], ...string[]]>([
  [
    'other/p',
    [partner],
    'NotAllowed',
    'spec.match[0] references Secrets, but namespace other may not use API keys in domain ' +
      '"shop": set apiKeys in ratelimit.domains',
  ],
  [
    'shop/p',
    [partner, create],
    'Invalid',
    'spec.match[0] must not reference Secrets: only the last',
  ],
  ['shop/p', [{ ...partner, value: 'x' }], 'Invalid', 'spec.match[0] must not have a value and'],
])('the policy %s with %j is %s: %s', (id, match, ...expected) => {
  const [reason, message = ''] = expected
  const outcome = outcomesOf([policy(id, { match, apiKeys: keys('one') })]).get(id)
  expect(outcome).toMatchObject({ reason, message: expect.stringContaining(message) })
})

test('a key that an older policy has uses no bytes of the share in a younger policy', () => {
  const grants = [{ domain: 'shop', namespaces: ['shop'], apiKeys: true, bytes: 100_000 }]
  const own = Array.from({ length: 20 }, (_, at) => `own-${at}`)
  const shared = Array.from({ length: 200 }, (_, at) => `shared-${at}`)
  const policies = [
    withKeys('shop/older', keys(...shared)),
    withKeys('shop/younger', keys(...own, ...shared), { match: [create, gold], createdMs: 1 }),
  ]
  const compiled = compile(policies, grants)
  expect(compiled.outcomes.get('shop/younger')).toEqual({
    accepted: true,
    message:
      'the limiters receive the policy with 20 API keys; ' +
      '200 more belong to older policies, such as shop/older',
  })
  const { children } = rulesOf(compiled).get('shop')?.exact.get('route')?.get('create') ?? {}
  expect(children?.exact.get('api_key')?.size).toBe(220)
})

test('keys count towards the share of the namespace, and those beyond it are ignored', () => {
  const grants = [{ domain: 'shop', namespaces: ['shop'], apiKeys: true, bytes: 100_000 }]
  const many = keys(...Array.from({ length: 1000 }, (_, at) => `key-${at}`))
  const policies = [policy('shop/older'), withKeys('shop/keys', many, { createdMs: 1 })]
  const compiled = compile(policies, grants)
  const outcome = compiled.outcomes.get('shop/keys')
  expect(outcome).toMatchObject({ accepted: true, reason: 'KeysIgnored' })
  const [, count = '', rest = ''] =
    /^the limiters receive the policy with (\d+) API keys; (\d+) more do not fit into the/.exec(
      outcome?.message ?? '',
    ) ?? []
  expect(Number(count)).toBeGreaterThan(200)
  expect(Number(count) + Number(rest)).toBe(1000)
  const { children } = rulesOf(compiled).get('shop')?.exact.get('route')?.get('create') ?? {}
  expect(children?.exact.get('api_key')?.size).toBe(Number(count))
  const bytes = compiled.resources.reduce((sum, resource) => sum + resource.length, 0)
  expect(bytes).toBeLessThan(100_000)
  expect(compiled.outcomes.get('shop/older')).toEqual({ accepted: true })
})
