// Compiles RateLimitPolicies into the rules that the limiters receive by xDS. Pure: the same
// policies and grants, in any order, result in the same bytes.
import { createHash } from 'node:crypto'
import {
  checkPolicy,
  type CheckedPolicy,
  type GrantIndex,
  indexGrants,
  quote,
} from './check-policy.ts'
import type { DomainGrant, Policy, PolicyOutcome } from './policy.ts'
import { compareStrings, writeConfig } from './write-config.ts'

/** The rules of all accepted policies. */
export interface Compilation {
  /** A hash of the resources. */
  readonly version: string
  /** Serialized RateLimitConfigs, one for each domain with policies, sorted by domain. */
  readonly resources: readonly Uint8Array[]
  /** By `namespace/name`. */
  readonly outcomes: ReadonlyMap<string, PolicyOutcome>
}

/**
 * Maximum size of all policies, in bytes: a response, with the names of its types, stays below the
 * 4 MiB that limiters accept by default. At SIZE_OF_ENTRY it allows fewer than 100,000 descriptors,
 * and with at least 8 bytes for each value fewer than 500,000 values: the bounds of the limiter.
 */
export const POLICIES_BYTES_MAX = 3.5 * 1024 * 1024
/** Size of an entry in addition to its bytes. */
const SIZE_OF_ENTRY = 37
const VERSION_LENGTH = 32

/**
 * Compiles the policies. Of two policies with the same domain and match, the older is accepted. A
 * policy that is not accepted has no effect on the others.
 */
export function compile(policies: readonly Policy[], grants: readonly DomainGrant[]): Compilation {
  const outcomes = new Map<string, PolicyOutcome>()
  const index = indexGrants(grants)
  const accepted = createAcceptance(index)
  for (const policy of policies.toSorted(compareAge)) {
    const checked = checkPolicy(policy, index)
    outcomes.set(nameOf(policy), 'reason' in checked ? checked : accepted.add(policy, checked))
  }
  for (const { policy, message } of accepted.warnings()) {
    outcomes.set(nameOf(policy), { accepted: true, message })
  }
  const resources = accepted.domains().map(([domain, all]) => writeConfig(domain, all))
  return { version: versionOf(resources), resources, outcomes }
}

function compareAge(a: Policy, b: Policy): number {
  return (
    a.createdMs - b.createdMs ||
    compareStrings(a.namespace, b.namespace) ||
    compareStrings(a.name, b.name)
  )
}

function nameOf({ namespace, name }: Pick<Policy, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

function versionOf(resources: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const bytes of resources) hash.update(`${bytes.length}:`).update(bytes)
  return hash.digest('hex').slice(0, VERSION_LENGTH)
}

interface Accepted {
  readonly policy: Policy
  readonly checked: CheckedPolicy
}

/** The policies that are accepted so far, from the oldest to the youngest. */
function createAcceptance({ namespaces }: GrantIndex) {
  const bytesMax = Math.floor(POLICIES_BYTES_MAX / Math.max(1, namespaces))
  const byMatch = new Map<string, Accepted>()
  const bytesOf = new Map<string, number>()
  /** The names of limits by namespace and domain, which `replaces` can contain. */
  const limitNames = new Map<string, Set<string>>()
  return {
    add(policy: Policy, checked: CheckedPolicy): PolicyOutcome {
      const { namespace } = policy
      const { domain, limits } = checked
      const key = JSON.stringify([domain, limits.match.map((entry) => [entry.key, entry.value])])
      const winner = byMatch.get(key)
      if (winner !== undefined) return conflictWith(winner, domain)
      const size = checked.bytes + SIZE_OF_ENTRY * limits.match.length
      const bytes = (bytesOf.get(namespace) ?? 0) + size
      if (bytes > bytesMax) return tooMany(namespace, bytes, bytesMax)
      byMatch.set(key, { policy, checked })
      bytesOf.set(namespace, bytes)
      const scope = JSON.stringify([namespace, domain])
      const names = limitNames.get(scope) ?? new Set()
      limitNames.set(scope, names)
      for (const { name } of limits.limits) names.add(name)
      return { accepted: true }
    },
    /** The policies with names in `replaces` that no limit has. */
    warnings(): readonly { readonly policy: Policy; readonly message: string }[] {
      return [...byMatch.values()].flatMap(({ policy, checked: { domain, limits } }) => {
        const names = limitNames.get(JSON.stringify([policy.namespace, domain]))
        const missing = limits.replaces.find((name) => names?.has(name) !== true)
        if (missing === undefined) return []
        const where = `in domain ${quote(domain)}`
        const cause = `no accepted policy of this namespace has a limit ${quote(missing)} ${where}`
        return [{ policy, message: `spec.replaces has an unknown name: ${cause}` }]
      })
    },
    domains() {
      const domains = Map.groupBy(byMatch.values(), ({ checked }) => checked.domain)
      return [...domains]
        .sort(([a], [b]) => compareStrings(a, b))
        .map(([domain, all]) => [domain, all.map(({ checked }) => checked.limits)] as const)
    },
  }
}

function conflictWith({ policy }: Accepted, domain: string): PolicyOutcome {
  const where = `spec.match in domain ${quote(domain)}`
  const message = `the older policy ${nameOf(policy)} has the same ${where}: change or delete one`
  return { accepted: false, reason: 'Conflicted', message }
}

function tooMany(namespace: string, bytes: number, bytesMax: number): PolicyOutcome {
  const share = `its share of ${POLICIES_BYTES_MAX} bytes for all namespaces`
  const allowed = `must have at most ${bytesMax} bytes, ${share}`
  const policies = `the policies of namespace ${namespace}`
  const message = `${policies} ${allowed}: with this policy they have ${bytes}`
  return { accepted: false, reason: 'TooMany', message }
}
