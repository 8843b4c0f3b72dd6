// Checks one policy alone: whether its namespace may write it, and whether the limiter's own parser
// accepts it.
import type { RuleFault } from '../limits/rule.ts'
import { DEPTH_MAX, parseRules } from '../limits/parse-rules.ts'
import { type DescriptorLimits, descriptorLimitsOf } from './descriptor-limits.ts'
import type { DomainGrant, Policy, PolicyOutcome } from './policy.ts'
import { referencesSecrets } from './api-keys.ts'
import { configTreeOf } from './config-tree.ts'
import { sharesOf } from './shares.ts'
import { writeConfig } from './write-config.ts'

/** A valid policy. */
export interface CheckedPolicy {
  /** The domain of the policy, even if its spec does not set one. */
  readonly domain: string
  readonly limits: DescriptorLimits
  /** Maximum bytes that it adds to the rules of its domain. */
  readonly bytes: number
  /** Bytes that each API key adds. */
  readonly bytesPerKey: number
}

/** Why a policy is not accepted. */
export type Rejection = Extract<PolicyOutcome, { readonly accepted: false }>

const QUOTED_LENGTH_MAX = 100
const NAMES_LISTED_MAX = 5
const FAULTS_LISTED_MAX = 3
/**
 * Extra bytes per nesting level: the length prefix of a message grows if the message also contains
 * descriptors of other policies.
 */
const LENGTH_PREFIX_GROWTH_BYTES = 4

/** The grants by namespace. */
export interface GrantIndex {
  of(namespace: string): readonly DomainGrant[]
  /** How many bytes of rules the policies of a namespace may have. */
  shareOf(namespace: string): number
  /** Whether several namespaces may write to a domain. */
  isShared(domain: string): boolean
}

/** Indexes grants. */
export function indexGrants(grants: readonly DomainGrant[]): GrantIndex {
  const byNamespace = new Map<string, DomainGrant[]>()
  const writers = new Map<string, Set<string>>()
  const shares = sharesOf(grants)
  for (const grant of grants) {
    const namespaces = writers.get(grant.domain) ?? new Set()
    writers.set(grant.domain, namespaces)
    for (const namespace of new Set(grant.namespaces)) {
      namespaces.add(namespace)
      byNamespace.set(namespace, [...(byNamespace.get(namespace) ?? []), grant])
    }
  }
  return {
    of: (namespace) => byNamespace.get(namespace) ?? [],
    shareOf: (namespace) => shares.get(namespace) ?? 0,
    isShared: (domain) => (writers.get(domain)?.size ?? 0) > 1,
  }
}

/** The fields of a policy on which the result of its check depends. */
type CheckInput = Pick<Policy, 'namespace' | 'spec' | 'apiKeys'>

/** Checks a policy. */
export function checkPolicy(policy: CheckInput, grants: GrantIndex): CheckedPolicy | Rejection {
  const { length } = policy.spec.match
  if (length === 0 || length > DEPTH_MAX) {
    const message = `spec.match must have 1 to ${DEPTH_MAX} entries: it has ${length}`
    return { accepted: false, reason: 'Invalid', message }
  }
  const granted = grants.of(policy.namespace)
  const domain = domainOf(policy, granted)
  if (typeof domain !== 'string') return domain
  const limits = descriptorLimitsOf(policy.spec, {
    hashes: policy.spec.match.some(referencesSecrets) ? (policy.apiKeys?.hashes ?? []) : undefined,
    // So that `replaces` cannot name a limit of another namespace.
    namePrefix: grants.isShared(domain) ? `${policy.namespace}/` : '',
  })
  const rejection = checkGrants(policy.namespace, { domain, limits, granted })
  if (rejection !== undefined) return rejection
  const secretsRejection = checkSecrets(policy, granted, domain)
  if (secretsRejection !== undefined) return secretsRejection
  const checked = withPlaceholderKeys(limits, 1)
  const parsed = parseRules([configTreeOf(domain, checked)], { mergeDomains: false })
  if ('faults' in parsed) return { accepted: false, reason: 'Invalid', ...faultsOf(parsed.faults) }
  const bytes = writeConfig(domain, [checked])
  const size = bytes.length + LENGTH_PREFIX_GROWTH_BYTES * length
  if (limits.hashes === undefined) return { domain, limits, bytes: size, bytesPerKey: 0 }
  const bytesPerKey =
    writeConfig(domain, [withPlaceholderKeys(limits, 2)]).length -
    bytes.length +
    LENGTH_PREFIX_GROWTH_BYTES
  return { domain, limits, bytes: size + limits.hashes.length * bytesPerKey, bytesPerKey }
}

/** The limits with `count` placeholders instead of their API keys, if they have any. */
function withPlaceholderKeys(limits: DescriptorLimits, count: number): DescriptorLimits {
  if (limits.hashes === undefined) return limits
  const hashOf = (_: unknown, at: number) => `sha256:${String(at).padStart(64, '0')}`
  return { ...limits, hashes: Array.from({ length: count }, hashOf) }
}

/** Checks that only the last entry references Secrets, has no value then, and has a grant. */
function checkSecrets(
  { namespace, spec: { match } }: CheckInput,
  granted: readonly DomainGrant[],
  domain: string,
): Rejection | undefined {
  const at = match.findIndex(referencesSecrets)
  if (at === -1) return undefined
  const entry = `spec.match[${at}]`
  if (at < match.length - 1) {
    const message = `${entry} must not reference Secrets: only the last entry can`
    return { accepted: false, reason: 'Invalid', message }
  }
  if ((match[at]?.value ?? '') !== '') {
    const message = `${entry} must not have a value and reference Secrets: remove one`
    return { accepted: false, reason: 'Invalid', message }
  }
  if (granted.some((grant) => grant.domain === domain && grant.apiKeys === true)) return undefined
  const cause = `${entry} references Secrets, but namespace ${namespace} may not use API keys`
  const message = `${cause} in domain ${quote(domain)}: set apiKeys in ratelimit.domains`
  return { accepted: false, reason: 'NotAllowed', message }
}

/** Quotes and truncates a user's string for a message. */
export function quote(name: string): string {
  const { length } = name
  return JSON.stringify(
    length > QUOTED_LENGTH_MAX ? `${name.slice(0, QUOTED_LENGTH_MAX)}...` : name,
  )
}

function quoteAll(domains: readonly string[]): string {
  const names = domains.slice(0, NAMES_LISTED_MAX).map(quote).join(', ')
  const more = domains.length - NAMES_LISTED_MAX
  return more > 0 ? `${names} and ${more} more` : names
}

function domainOf(
  { namespace, spec }: CheckInput,
  granted: readonly DomainGrant[],
): string | Rejection {
  const domains = [...new Set(granted.map(({ domain }) => domain))].sort()
  const domain = spec.domain?.toWellFormed() ?? ''
  const [first] = domains
  if (first === undefined) {
    const message = `namespace ${namespace} is not allowed to write to any domain`
    const cause = 'no entry of ratelimit.domains lists the namespace'
    return { accepted: false, reason: 'NotAllowed', message: `${message}: ${cause}` }
  }
  if (domain === '' && domains.length === 1) return first
  if (domain === '') {
    const message = `spec.domain is required, because namespace ${namespace} may write to several`
    return { accepted: false, reason: 'Invalid', message: `${message}: ${quoteAll(domains)}` }
  }
  if (domains.includes(domain)) return domain
  const message = `namespace ${namespace} is not allowed to write to domain ${quote(domain)}`
  const allowed = `it may write to ${quoteAll(domains)}`
  return { accepted: false, reason: 'NotAllowed', message: `${message}: ${allowed}` }
}

interface GrantedLimits {
  readonly domain: string
  readonly limits: DescriptorLimits
  readonly granted: readonly DomainGrant[]
}

function checkGrants(
  namespace: string,
  { domain, limits, granted: all }: GrantedLimits,
): Rejection | undefined {
  const [first] = limits.match
  const granted = all.filter((grant) => grant.domain === domain)
  const isGranted = granted.some(
    ({ below }) => !below || (below.key === first?.key && below.value === first.value),
  )
  if (isGranted) return undefined
  const entries = granted.flatMap(({ below }) => (below ? [`${below.key}=${below.value}`] : []))
  const [start, place] =
    entries.length > 1 ? ['with one of', 'these entries'] : ['with', 'this entry']
  const message = `spec.match must start ${start} ${quoteAll(entries)} in domain ${quote(domain)}`
  const cause = `namespace ${namespace} may write only below ${place}`
  return { accepted: false, reason: 'NotAllowed', message: `${message}: ${cause}` }
}

/** Translates the parser's faults to the fields of the spec. */
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
