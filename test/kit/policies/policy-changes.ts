// Random changes of RateLimitPolicies in 20 namespaces, and of their Secrets with API keys. Many
// specs conflict, are not allowed, are invalid, or exceed the share of their namespace.
import type {
  DomainGrant,
  PolicyEntry,
  PolicyLimit,
  PolicySpec,
} from '../../../src/policies/policy.ts'
import type { Random } from '../random.ts'

/** A namespace whose policies do not change. */
export const STEADY = 'steady'
/** The key of its policy, which others also try to limit. */
export const STEADY_KEY = 'steady'
const TENANTS = numbered('tenant', 20)
const NAMES = numbered('p', 50)
/** How many policies exist at most. */
export const POLICIES_MAX = TENANTS.length * NAMES.length

/** Some namespaces share a domain, some own one, some may write below one entry only. */
export const CHANGE_GRANTS: readonly DomainGrant[] = [
  { domain: 'shop', namespaces: [STEADY], bytes: 100_000 },
  { domain: 'shop', namespaces: TENANTS.slice(0, 4), apiKeys: true },
  { domain: 'shop', namespaces: TENANTS.slice(4, 7) },
  { domain: 'shop', namespaces: TENANTS.slice(7, 8), bytes: 4000 },
  ...TENANTS.slice(8, 14).map((tenant) => ({
    ...{ domain: 'shop', namespaces: [tenant], below: { key: 'tenant', value: tenant } },
  })),
  { domain: 'edge', namespaces: TENANTS.slice(14, 17) },
  { domain: 'own', namespaces: TENANTS.slice(14, 17) },
  { domain: 'api', namespaces: TENANTS.slice(17), apiKeys: true },
]
/** All namespaces, with whether their policies may reference Secrets. */
export const NAMESPACES: ReadonlyMap<string, boolean> = new Map(
  CHANGE_GRANTS.flatMap(({ namespaces, apiKeys = false }) =>
    namespaces.map((namespace) => [namespace, apiKeys] as const),
  ),
)
const KEY_TENANTS = TENANTS.filter((tenant) => NAMESPACES.get(tenant))
const BELOW_TENANTS = TENANTS.slice(8, 14)
const TWO_DOMAIN_TENANTS = TENANTS.slice(14, 17)

/** One change; without `spec` or `data`, the object is deleted. */
export type PolicyChange =
  | {
      readonly kind: 'policy'
      readonly namespace: string
      readonly name: string
      readonly spec: PolicySpec | undefined
    }
  | {
      readonly kind: 'keys'
      readonly namespace: string
      readonly name: string
      readonly tier: string
      /** API keys by their name in the Secret. */
      readonly data: Readonly<Record<string, string>> | undefined
    }

/** Generates changes; it has the specs that all of them result in. */
export interface PolicyChanges {
  readonly next: () => PolicyChange
  /** Creates every policy that does not exist. */
  readonly fill: () => readonly PolicyChange[]
}

/** Creates a generator without policies. */
export function createPolicyChanges(random: Random): PolicyChanges {
  const specs = new Map<string, PolicySpec>()
  const change = (namespace: string, name: string, spec: PolicySpec | undefined): PolicyChange => {
    if (spec === undefined) specs.delete(`${namespace}/${name}`)
    else specs.set(`${namespace}/${name}`, spec)
    return { kind: 'policy', namespace, name, spec }
  }
  return {
    next() {
      if (random.chance(0.08)) return keysChange(random)
      const [namespace, name] = [random.pick(TENANTS), random.pick(NAMES)]
      const before = specs.get(`${namespace}/${name}`)
      const kind = before === undefined ? 20 : random.int(20)
      if (before === undefined || kind >= 9) {
        return change(namespace, name, newSpec(random, namespace, name))
      }
      if (kind < 3) return change(namespace, name, undefined)
      if (kind < 6) return change(namespace, name, worsen(random, before))
      const mode = before.mode === 'Audit' ? 'Enforce' : 'Audit'
      return change(namespace, name, { ...before, mode })
    },
    fill: () =>
      TENANTS.flatMap((namespace) =>
        NAMES.filter((name) => !specs.has(`${namespace}/${name}`)).map((name) =>
          change(namespace, name, newSpec(random, namespace, name)),
        ),
      ),
  }
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${String(at).padStart(2, '0')}`)
}

function keysChange(random: Random): PolicyChange {
  const [namespace, name] = [random.pick(KEY_TENANTS), `keys-${random.int(3)}`]
  const tier = random.pick(['gold', 'silver'])
  const keys = random.list(5, () => `${namespace}-key-${random.int(20)}`)
  if (random.chance(0.1)) keys.push('two\nlines')
  const data = Object.fromEntries(keys.map((key, at) => [`key-${at}`, key]))
  return { kind: 'keys', namespace, name, tier, data: random.chance(0.2) ? undefined : data }
}

const ALGORITHMS = [
  ...['TokenBucket', 'FixedWindow', 'SlidingWindowLog', 'SlidingWindowCounter', 'LeakyBucket'],
]
const KEYS = ['route', 'client', 'plan', 'region']
/** Few, so that policies conflict; an empty value matches any. */
const SHARED_VALUES = ['', 'a', 'b', 'c', 'a*', '*b']

/** A spec that is accepted, unless it conflicts or exceeds a bound. */
function newSpec(random: Random, namespace: string, name: string): PolicySpec {
  const others = NAMES.filter((each) => each !== name)
  const domain = TWO_DOMAIN_TENANTS.includes(namespace) && random.pick(['edge', 'own'])
  const replaces = random.chance(0.1) ? [`${random.pick(others)}-0`] : []
  return {
    ...(domain !== false && { domain }),
    match: newMatch(random, namespace, name),
    limits: Array.from({ length: 1 + random.int(2) }, (_, at) => newLimit(random, `${name}-${at}`)),
    mode: random.pick(['Enforce', 'Enforce', 'Audit']),
    ...(replaces.length > 0 && { replaces }),
    onStoreError: random.pick(['Local', 'Allow', 'Deny']),
  }
}

function newMatch(random: Random, namespace: string, name: string): PolicyEntry[] {
  const isOwn = random.chance(0.8)
  const value = isOwn ? `${namespace}-${name}` : random.pick(SHARED_VALUES)
  const match: PolicyEntry[] = [entryOf(random.pick(KEYS), value)]
  if (BELOW_TENANTS.includes(namespace)) match.unshift(entryOf('tenant', namespace))
  if (random.chance(0.3)) match.push(entryOf(random.pick(KEYS), random.pick(SHARED_VALUES)))
  if (!KEY_TENANTS.includes(namespace) || random.chance(0.85)) return match
  const secret = random.chance(0.5)
    ? { secretRef: { name: `keys-${random.int(3)}` } }
    : { secretSelector: { matchLabels: { tier: random.pick(['gold', 'silver']) } } }
  return [...match, { key: 'api_key', ...secret }]
}

function entryOf(key: string, value: string): PolicyEntry {
  return value === '' ? { key } : { key, value }
}

function newLimit(random: Random, name: string): PolicyLimit {
  const algorithm = random.pick(ALGORITHMS)
  const requests = random.pick([0, 1, 2, 5, 10, 20, 50, 100])
  const window = random.pick(['1s', '1m', '1h', '1d'])
  const burst = algorithm === 'TokenBucket' && random.chance(0.5)
  return { name, algorithm, requests, window, ...(burst && { burst: 1 + random.int(200) }) }
}

/** A spec that the API server accepts, and the compiler mostly not. */
function worsen(random: Random, spec: PolicySpec): PolicySpec {
  const [limit] = spec.limits
  if (limit === undefined) throw new Error('a spec has no limit')
  const { name } = limit
  const unroundable = { name, algorithm: 'LeakyBucket', requests: 4_294_967_291, window: '366d' }
  const long = { ...limit, name: name.padEnd(100, 'x') }
  return random.pick<PolicySpec>([
    { ...spec, domain: 'other' },
    { ...spec, limits: [unroundable] },
    { ...spec, domain: 'shop', match: [{ key: STEADY_KEY }] },
    { ...spec, match: [{ key: 'tenant', value: 'another' }] },
    {
      ...spec,
      match: [
        ...spec.match.filter(({ value }) => value !== undefined),
        entryOf('x', 'y'.repeat(500)),
      ],
      limits: Array.from({ length: 8 }, (_, at) => ({ ...long, name: `${long.name}-${at}` })),
    },
  ])
}
