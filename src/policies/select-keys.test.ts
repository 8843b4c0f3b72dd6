// The API keys of policies: which are selected, and how much memory a namespace can use with them.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { policy as createPolicy, rulesOf } from '../../test/kit/policies/random-policies.ts'
import { apiKeysOf, referencesSecrets } from './api-keys.ts'
import { checkPolicy, indexGrants } from './check-policy.ts'
import { compile, createCompiler, POLICIES_MAX } from './compile.ts'
import type { ApiKeySecret, Policy, PolicyEntry, PolicySpec } from './policy.ts'
import { createKeySelection, SELECTED_SHARES_MAX } from './select-keys.ts'
import { DESCRIPTOR_OVERHEAD_BYTES, KEY_BYTES_MIN, keysMaxOf, SHARE_BYTES } from './shares.ts'

const GRANTS = ['shop', 'other'].map((name) => ({
  ...{ domain: name, namespaces: [name], apiKeys: true },
}))
const hashOf = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
const secretOf = (name: string, labels: ApiKeySecret['labels'], keys: readonly string[]) => ({
  ...{ name, labels, hashes: keys.map(hashOf), problems: [] },
})
const byLabel = (label: string, value = 'x'): PolicyEntry => ({
  ...{ key: 'api_key', secretSelector: { matchLabels: { [label]: value } } },
})
const byName = (name: string): PolicyEntry => ({ key: 'api_key', secretRef: { name } })
const route = (value: string) => ({ key: 'route', value })
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
const domainSpec = (spec: PolicySpec) => ({ ...spec, domain: 'shop' })
/** The last accepted spec of a policy, which has another selector. */
const acceptedWith = (spec: PolicySpec, ...match: PolicyEntry[]) => ({
  accepted: { generation: 0, spec: { ...domainSpec(spec), match } },
})

/** 20 Secrets with 1,000 keys each; each of 2,000 labels is on about half of the Secrets. */
const MANY: readonly ApiKeySecret[] = numbers(20).map((at) => {
  const labels = numbers(2000).filter((label) => label === 0 || (label * 31 + at * label) % 2 === 0)
  const keys = numbers(1000).map((key) => `${at}-${key}`)
  return secretOf(`s${at}`, Object.fromEntries(labels.map((label) => [`l${label}`, 'x'])), keys)
})

/** 1,000 policies of a namespace; `labelOf`: which label each of its specs selects. */
function manyPolicies(labelOf: (at: number) => number): Policy[] {
  return numbers(POLICIES_MAX).map((at) => {
    const entryAt = (spec: number) => byLabel(`l${labelOf(2 * at + spec)}`)
    const policy = createPolicy(`shop/p${at}`, { match: [route(`${at}`), entryAt(0)] }, at)
    const { accepted } = acceptedWith(policy.spec, route(`${at}`), entryAt(1))
    return { ...policy, secrets: MANY, accepted }
  })
}

/** The arrays of hashes that policies have; each counts once. */
function arraysOf(policies: readonly Policy[]) {
  const all = policies.flatMap(({ apiKeys, accepted }) => [apiKeys, accepted?.apiKeys])
  const arrays = [...new Set(all.flatMap((keys) => (keys === undefined ? [] : [keys.hashes])))]
  return { arrays: arrays.length, hashes: arrays.reduce((sum, { length }) => sum + length, 0) }
}

const KEYS_IN_SHARE = keysMaxOf(SHARE_BYTES)

test('1,000 policies with one selector of 20,000 keys have one array', () => {
  const policies = createKeySelection(indexGrants(GRANTS))(manyPolicies(() => 0))
  expect(arraysOf(policies)).toEqual({ arrays: 1, hashes: KEYS_IN_SHARE })
})

test('1,000 policies with 2,000 selectors of 20,000 keys have few hashes', () => {
  const policies = createKeySelection(indexGrants(GRANTS))(manyPolicies((at) => at))
  expect(arraysOf(policies).hashes).toBe(SELECTED_SHARES_MAX * KEYS_IN_SHARE)
})

test('1,000 policies that select 20,000 keys have no effect on another namespace', () => {
  const match = [route('o'), byLabel('l0')]
  const other = { ...createPolicy('other/p', { match }, 1e6), secrets: MANY.slice(0, 1) }
  const many = manyPolicies((at) => at)
  const { policies, outcomes, resources } = compile([...many, other], GRANTS)
  const { hashes } = arraysOf(policies.filter(({ namespace }) => namespace === 'shop'))
  expect(hashes).toBeLessThanOrEqual((SELECTED_SHARES_MAX + 1) * KEYS_IN_SHARE)
  const alone = compile([other], GRANTS)
  expect(alone.outcomes.get('other/p')?.message).toMatch(/ with 118 API keys; /)
  expect(outcomes.get('other/p')).toEqual(alone.outcomes.get('other/p'))
  expect(resources).toContainEqual(alone.resources[0])
})

test('if a namespace selects more keys than it may, the youngest policies have none', () => {
  const grants = [{ ...{ domain: 'shop', namespaces: ['shop'], apiKeys: true }, bytes: 20_000 }]
  const secrets = numbers(30).map((at) =>
    secretOf(
      `s${at}`,
      {},
      numbers(200).map((key) => `${at}-${key}`),
    ),
  )
  const policies = numbers(30).map((at) => {
    const match = [route(`${at}`), byName(`s${at}`)]
    const policy = createPolicy(`shop/p${at}`, { match }, at)
    // Accepted before, so that the keys of older policies cannot displace it.
    return { ...policy, secrets, accepted: { generation: 1, spec: domainSpec(policy.spec) } }
  })
  const { outcomes } = compile(policies, grants)
  expect(outcomes.get('shop/p19')?.message).toMatch(
    /^the limiters receive the policy with 0 API keys; 200 more do not fit into the namespace's/,
  )
  expect(outcomes.get('shop/p20')).toEqual({
    ...{ accepted: true, reason: 'KeysIgnored' },
    message:
      'the limiters receive the policy with 0 API keys; ' +
      'its API keys are ignored: older policies of the namespace select 2000',
  })
})

test('surplus policies need no keys', () => {
  const surplus: Policy = {
    ...createPolicy('shop/young', { match: [byName('s0')] }, 1e6),
    get secrets(): never {
      throw new Error('the keys of a surplus policy were selected')
    },
  }
  const { outcomes } = compile([surplus, ...manyPolicies(() => 0)], GRANTS)
  expect(outcomes.get('shop/young')).toMatchObject({ accepted: false, reason: 'TooMany' })
})

test('a selector returns the same array while its keys do not change', () => {
  const select = createKeySelection(indexGrants(GRANTS))
  const policy = createPolicy('shop/p', { match: [byLabel('tier', 'gold')] })
  const gold = secretOf('gold', { tier: 'gold' }, ['a', 'b'])
  const hashesWith = (...secrets: ApiKeySecret[]) => {
    const [first] = select([{ ...policy, secrets, ...acceptedWith(policy.spec, byName('gold')) }])
    return [first?.apiKeys?.hashes, first?.accepted?.apiKeys?.hashes]
  }
  const before = hashesWith(gold)
  expect(before).toEqual([gold.hashes.toSorted(), gold.hashes.toSorted()])
  const after = hashesWith({ ...gold }, secretOf('other', {}, ['c']))
  expect(after.map((hashes, at) => hashes === before[at])).toEqual([true, true])
  const [selected, named] = hashesWith(gold, secretOf('other', { tier: 'gold' }, ['c']))
  expect(selected).toHaveLength(3)
  expect(named).toBe(before[1])
})

test('policies have the keys that the rules contain', () => {
  const compiler = createCompiler(GRANTS)
  const secrets = [secretOf('a', {}, ['k-1', 'k-2']), secretOf('b', {}, ['k-2', 'k-3'])]
  const compiled = compiler([
    { ...createPolicy('shop/a', { match: [byName('a')] }), secrets },
    { ...createPolicy('shop/b', { match: [byName('b')] }, 1), secrets },
  ])
  expect(compiled.policies.map(({ apiKeys }) => apiKeys)).toEqual([
    { hashes: ['k-1', 'k-2'].map(hashOf).sort() },
    { hashes: [hashOf('k-3')] },
  ])
})

test('each API key needs at least KEY_BYTES_MIN bytes of the share', () => {
  const limits = [{ name: 'l', algorithm: '', unlimited: true }]
  const spec = { ...createPolicy('shop/p', { match: [{ ...byName('s'), key: 'k' }], limits }).spec }
  const checked = checkPolicy({ namespace: 'shop', spec }, indexGrants(GRANTS))
  if ('reason' in checked) throw new Error(checked.message)
  const bytes = checked.bytesPerKey + DESCRIPTOR_OVERHEAD_BYTES
  expect(bytes).toBeGreaterThanOrEqual(KEY_BYTES_MIN)
  expect(bytes).toBeLessThan(KEY_BYTES_MIN + 10)
})

const keys = fc.uniqueArray(fc.nat({ max: 60 }), { minLength: 5 })
const labelValues = fc.constantFrom('x', 'y')
const worlds = fc.record({
  bytes: fc.integer({ min: 1000, max: 12_000 }),
  secrets: fc.array(fc.record({ tier: labelValues, team: labelValues, keys }), { maxLength: 5 }),
  policies: fc.array(
    fc.record({
      routes: fc.tuple(fc.constantFrom('1', '2', '3'), fc.constantFrom('1', '2', '3')),
      entries: fc.tuple(
        ...[0, 1].map(() =>
          fc.constantFrom(
            ...[byLabel('tier'), byLabel('tier', 'y'), byLabel('team'), byName('s0')],
            ...[byName('s1'), { key: 'client' }],
          ),
        ),
      ),
      isEdited: fc.boolean(),
      createdMs: fc.nat({ max: 3 }),
    }),
    { maxLength: 8 },
  ),
})

test('bounding the number of selected keys does not change the rules', () => {
  let cut = 0
  fc.assert(
    fc.property(worlds, ({ bytes, secrets: given, policies }) => {
      const grants = [{ domain: 'shop', namespaces: ['shop'], apiKeys: true, bytes }]
      const secrets = given.map(({ keys: own, ...labels }, at) =>
        secretOf(`s${at}`, labels, own.map(String)),
      )
      const all = policies.map(({ routes, entries, isEdited, createdMs }, at): Policy => {
        const [match, last] = routes.map((value, of) => [route(value), entries[of] ?? byName('')])
        const policy = createPolicy(`shop/p${at}`, { match: match ?? [] }, createdMs)
        const accepted = isEdited && acceptedWith(policy.spec, ...(last ?? []))
        return { ...policy, ...accepted }
      })
      const withSecrets = all.map((policy) => ({ ...policy, secrets }))
      const bounded = compile(withSecrets, grants)
      const unbounded = compile(all.map(withAllKeys(secrets)), grants)
      rulesOf(bounded)
      expect(bounded.version).toBe(unbounded.version)
      expect(bounded.active).toEqual(unbounded.active)
      for (const [name, { accepted, reason }] of unbounded.outcomes)
        expect(bounded.outcomes.get(name)).toMatchObject({ accepted, ...(reason && { reason }) })
      const selected = createKeySelection(indexGrants(grants))(withSecrets)
      cut += selected.filter(({ apiKeys }) => apiKeys?.surplus !== undefined).length
    }),
    { numRuns: 300 },
  )
  expect(cut).toBeGreaterThan(100)
})

function withAllKeys(secrets: readonly ApiKeySecret[]) {
  const keysOf = ({ match }: PolicySpec) => {
    const entry = match.find(referencesSecrets)
    return entry && { apiKeys: apiKeysOf(entry, secrets, Infinity) }
  }
  return ({ accepted, ...policy }: Policy): Policy => ({
    ...{ ...policy, ...keysOf(policy.spec) },
    ...(accepted && { accepted: { ...accepted, ...keysOf(accepted.spec) } }),
  })
}
