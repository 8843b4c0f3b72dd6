// Checks one policy alone: whether its namespace may write it, and whether the limiter's own parser
// accepts it.
import type { RuleFault } from '../limits/rule.ts'
import { DEPTH_MAX, parseRules } from '../limits/rules.ts'
import type { DomainGrant, Policy, PolicyOutcome } from './policy.ts'
import { type DescriptorLimits, writeConfig } from './write-config.ts'

/** A valid policy. */
export interface CheckedPolicy {
  /** Its domain, also if the spec has none. */
  readonly domain: string
  readonly limits: DescriptorLimits
  /** Maximum bytes that it adds to the rules of its domain. */
  readonly bytes: number
}

type Rejection = Extract<PolicyOutcome, { readonly accepted: false }>

const QUOTED_LENGTH_MAX = 100
const NAMES_LISTED_MAX = 5
const FAULTS_LISTED_MAX = 3
/** The length of a nested message has up to so many bytes more when it contains other policies. */
const LENGTH_BYTES = 4

/** The grants by namespace. */
export interface GrantIndex {
  readonly namespaces: number
  of(namespace: string): readonly DomainGrant[]
  /** Whether several namespaces may write to a domain. */
  isShared(domain: string): boolean
}

/** Indexes grants. */
export function indexGrants(grants: readonly DomainGrant[]): GrantIndex {
  const byNamespace = new Map<string, DomainGrant[]>()
  const writers = new Map<string, Set<string>>()
  for (const grant of grants) {
    const namespaces = writers.get(grant.domain) ?? new Set()
    writers.set(grant.domain, namespaces)
    for (const namespace of new Set(grant.namespaces)) {
      namespaces.add(namespace)
      byNamespace.set(namespace, [...(byNamespace.get(namespace) ?? []), grant])
    }
  }
  return {
    namespaces: byNamespace.size,
    of: (namespace) => byNamespace.get(namespace) ?? [],
    isShared: (domain) => (writers.get(domain)?.size ?? 0) > 1,
  }
}

/** Checks a policy. */
export function checkPolicy(policy: Policy, grants: GrantIndex): CheckedPolicy | Rejection {
  const { length } = policy.spec.match
  if (length === 0 || length > DEPTH_MAX) {
    const message = `spec.match must have 1 to ${DEPTH_MAX} entries: it has ${length}`
    return { accepted: false, reason: 'Invalid', message }
  }
  const granted = grants.of(policy.namespace)
  const domain = domainOf(policy, granted)
  if (typeof domain !== 'string') return domain
  const limits = limitsOf(policy, grants.isShared(domain))
  const rejection = checkGrants(policy.namespace, { domain, limits, granted })
  if (rejection !== undefined) return rejection
  const bytes = writeConfig(domain, [limits])
  const parsed = parseRules([{ index: 0, bytes }], { mergeDomains: false })
  if ('faults' in parsed) return { accepted: false, reason: 'Invalid', ...faultsOf(parsed.faults) }
  return { domain, limits, bytes: bytes.length + LENGTH_BYTES * length }
}

/** A string of a user in a message. */
export function quote(name: string): string {
  const { length } = name
  return JSON.stringify(
    length > QUOTED_LENGTH_MAX ? `${name.slice(0, QUOTED_LENGTH_MAX)}...` : name,
  )
}

function listed(domains: readonly string[]): string {
  const names = domains.slice(0, NAMES_LISTED_MAX).map(quote).join(', ')
  const more = domains.length - NAMES_LISTED_MAX
  return more > 0 ? `${names} and ${more} more` : names
}

function domainOf(
  { namespace, spec }: Policy,
  granted: readonly DomainGrant[],
): string | Rejection {
  const domains = [...new Set(granted.map(({ domain }) => domain))].sort()
  const domain = spec.domain?.toWellFormed() ?? ''
  const [first] = domains
  if (first === undefined) {
    const message = `namespace ${namespace} may not write to any domain`
    const cause = 'ratelimit.domains lists none'
    return { accepted: false, reason: 'NotAllowed', message: `${message}: ${cause}` }
  }
  if (domain === '' && domains.length === 1) return first
  if (domain === '') {
    const message = `spec.domain is required, because namespace ${namespace} may write to several`
    return { accepted: false, reason: 'Invalid', message: `${message}: ${listed(domains)}` }
  }
  if (domains.includes(domain)) return domain
  const message = `namespace ${namespace} may not write to domain ${quote(domain)}`
  const allowed = `it may write to ${listed(domains)}`
  return { accepted: false, reason: 'NotAllowed', message: `${message}: ${allowed}` }
}

function limitsOf({ namespace, spec }: Policy, isShared: boolean): DescriptorLimits {
  return {
    match: spec.match.map(({ key, value = '' }) => ({
      key: key.toWellFormed(),
      value: value.toWellFormed(),
    })),
    limits: spec.limits,
    mode: spec.mode,
    replaces: spec.replaces ?? [],
    onStoreError: spec.onStoreError,
    // So that `replaces` cannot name a limit of another namespace.
    namePrefix: isShared ? `${namespace}/` : '',
  }
}

interface Place {
  readonly domain: string
  readonly limits: DescriptorLimits
  readonly granted: readonly DomainGrant[]
}

function checkGrants(
  namespace: string,
  { domain, limits, granted: all }: Place,
): Rejection | undefined {
  const [first] = limits.match
  const granted = all.filter((grant) => grant.domain === domain)
  const isGranted = granted.some(
    ({ below }) => !below || (below.key === first?.key && below.value === first.value),
  )
  if (isGranted) return undefined
  const entries = granted.flatMap(({ below }) => (below ? [`${below.key}=${below.value}`] : []))
  const message = `spec.match must start with ${listed(entries)} in domain ${quote(domain)}`
  const cause = `namespace ${namespace} may only write there`
  return { accepted: false, reason: 'NotAllowed', message: `${message}: ${cause}` }
}

/** The faults, with the paths and the names of the spec. */
function faultsOf(faults: readonly RuleFault[]): Pick<Rejection, 'message'> {
  const shown = faults.slice(0, FAULTS_LISTED_MAX).map(({ path = '', message }) => {
    const cause = message
      .replace(/^error loading config file: /, '')
      .replaceAll('requests_per_unit', 'requests')
    return `${placeOf(path)}: ${cause.slice(0, 3 * QUOTED_LENGTH_MAX)}`
  })
  const more = faults.length - shown.length
  return { message: shown.join('; ') + (more > 0 ? ` and ${more} more` : '') }
}

function placeOf(path: string): string {
  const limit = /\.rate_limits\[(\d+)\]/.exec(path)?.[1]
  if (limit !== undefined) return `spec.limits[${limit}]`
  const depth = path.match(/descriptors\[/g)?.length ?? 0
  return depth > 0 ? `spec.match[${depth - 1}]` : 'spec'
}
