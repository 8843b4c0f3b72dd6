// Policies for tests of the compiler: some grants, a valid policy, and random hostile ones.
import fc from 'fast-check'
import type { RuleSet } from '../../../src/limits/rule.ts'
import { parseRules } from '../../../src/limits/parse-rules.ts'
import type { Compilation } from '../../../src/policies/compile.ts'
import type { DomainGrant, Policy, PolicySpec } from '../../../src/policies/policy.ts'

/** A domain with an owner and two tenants, and two domains with one namespace each. */
export const GRANTS: readonly DomainGrant[] = [
  { domain: 'edge', namespaces: ['platform'] },
  { domain: 'edge', namespaces: ['a'], below: { key: 'tenant', value: 'a' } },
  { domain: 'edge', namespaces: ['b'], below: { key: 'tenant', value: 'b' } },
  { domain: 'own', namespaces: ['b'] },
  { domain: 'shop', namespaces: ['shop'] },
]
/** A valid limit. */
export const LIMIT = { name: 'l', algorithm: 'FixedWindow', requests: 5, window: '1m' }

/** A valid policy with the changes of `spec`; `id` is `namespace/name`. */
export function policy(id: string, spec: Partial<PolicySpec> = {}, createdMs = 0): Policy {
  const [namespace = '', name = ''] = id.split('/')
  const full: PolicySpec = {
    ...{ match: [{ key: 'client' }], limits: [LIMIT], mode: 'Enforce', onStoreError: 'Local' },
    ...spec,
  }
  return { namespace, name, uid: id, createdMs, generation: 1, spec: full }
}

/** The rules as the limiter reads them. Throws an error if it rejects the version. */
export function rulesOf({ resources }: Compilation): RuleSet {
  const files = resources.map((bytes, index) => ({ index, bytes }))
  const parsed = parseRules(files, { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults[0]))
  return parsed.rules
}

// Few distinct strings, so that conflicts are frequent; many of them are hostile.
const strings = fc.oneof(
  fc.constantFrom('a', 'b', 'tenant', 'client', 'a*', '*', '', '__proto__', '\ud800', '\ufffd'),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constant('x'.repeat(1025)),
)
const numbers = fc.oneof(
  fc.integer({ min: 0, max: 20 }),
  fc.constantFrom(-1, 0.5, NaN, Infinity, 2 ** 32 - 1, 2 ** 32, 2 ** 60),
)
const limits = fc.record(
  {
    name: strings,
    algorithm: fc.constantFrom('TokenBucket', 'FixedWindow', 'SlidingWindowLog', 'LeakyBucket', ''),
    requests: numbers,
    window: fc.constantFrom('1s', '30s', '366d', '367d', '1ms', '', 'x'),
    burst: numbers,
    unlimited: fc.boolean(),
  },
  { requiredKeys: ['name', 'algorithm'] },
)
const goodLimits = fc.record({
  ...{ name: fc.constantFrom('a', 'b', 'c'), algorithm: fc.constantFrom('FixedWindow') },
  ...{ requests: fc.integer({ min: 0, max: 9 }), window: fc.constantFrom('1s', '1m') },
})
const entries = fc.record({ key: strings, value: strings }, { requiredKeys: ['key'] })
const specs: fc.Arbitrary<PolicySpec> = fc.record(
  {
    domain: fc.constantFrom('edge', 'own', 'shop', 'other', ''),
    match: fc.array(entries, { maxLength: 3 }),
    limits: fc.array(fc.oneof(goodLimits, limits), { minLength: 1, maxLength: 2 }),
    mode: fc.constantFrom('Enforce', 'Audit'),
    replaces: fc.array(strings, { maxLength: 2 }),
    onStoreError: fc.constantFrom('Local', 'Allow', 'Deny'),
  },
  { requiredKeys: ['match', 'limits', 'mode', 'onStoreError'] },
)
const goodSpecs = fc.record({
  domain: fc.constantFrom('edge', 'edge', 'own', 'shop'),
  match: fc.array(
    fc.record({ key: fc.constantFrom('x', 'y'), value: fc.constantFrom('', 'x', 'x*') }),
    { minLength: 1, maxLength: 2 },
  ),
  limits: fc.array(goodLimits, { minLength: 1, maxLength: 2 }),
  mode: fc.constantFrom<PolicySpec['mode'][]>('Enforce', 'Audit'),
  replaces: fc.constantFrom([], ['d']),
  onStoreError: fc.constant<PolicySpec['onStoreError']>('Local'),
})
/** Policies of several namespaces, many of them invalid, not allowed or with a conflict. */
export const worlds = fc
  .array(
    fc.record({
      namespace: fc.constantFrom('platform', 'a', 'b', 'shop', 'x'),
      spec: fc.oneof(specs, goodSpecs, goodSpecs),
      // The last accepted spec, which a status can also contain without having been accepted.
      last: fc.oneof(fc.constant(undefined), specs, goodSpecs),
      lastGeneration: fc.integer({ min: 0, max: 1 }),
      // Half of them are where the tenants a and b may write.
      tenant: fc.constantFrom(undefined, undefined, 'a', 'b'),
      createdMs: fc.integer({ min: 0, max: 3 }),
    }),
    { maxLength: 25 },
  )
  .map((all) =>
    all.map(({ namespace, spec, last, lastGeneration, tenant, createdMs }, at) => {
      const start = tenant === undefined ? [] : [{ key: 'tenant', value: tenant }]
      const below = (given: PolicySpec) => ({ ...given, match: [...start, ...given.match] })
      const random = policy(`${tenant ?? namespace}/${at}`, below(spec), createdMs)
      if (last === undefined) return random
      return { ...random, accepted: { generation: lastGeneration, spec: below(last) } }
    }),
  )
