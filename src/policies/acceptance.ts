// Adds policies to the rules, from the oldest to the youngest, unless they conflict with an older
// one or exceed the share of their namespace.
import type { Candidate } from './candidates.ts'
import { type CheckedPolicy, type GrantIndex, quote, type Rejection } from './check-policy.ts'
import { createKeyLevels } from './key-levels.ts'
import type { Policy, PolicyOutcome } from './policy.ts'
import { SIZE_OF_ENTRY } from './shares.ts'
import { compareStrings, type DescriptorLimits } from './write-config.ts'

/** What limits the size of a spec, in addition to the share of its namespace. */
interface SpecLimits {
  /** Bytes that younger policies need: a change, and API keys, must not use them. */
  readonly reservedBytes: number
  /** Whether the spec was accepted last. */
  readonly isKept: boolean
}

/** The rules so far. */
export interface Acceptance {
  /** Adds a spec of a policy, or returns why not. */
  readonly add: (policy: Policy, candidate: Candidate, given: SpecLimits) => PolicyOutcome
  /** The policies with names in `replaces` that no limit has. */
  readonly warnings: () => readonly { readonly policy: Policy; readonly message: string }[]
  /** The limits by domain, sorted. */
  readonly domains: () => readonly (readonly [string, readonly DescriptorLimits[]])[]
}

interface Added {
  readonly policy: Policy
  readonly candidate: Candidate
  readonly limits: DescriptorLimits
}

/** Creates rules without policies. */
export function createAcceptance(grants: GrantIndex): Acceptance {
  const byMatch = new Map<string, Added>()
  const levels = createKeyLevels()
  const bytesOf = new Map<string, number>()
  /** The names of limits by namespace and domain, which `replaces` can contain. */
  const limitNames = new Map<string, Set<string>>()
  return {
    add(policy, candidate, { isKept, reservedBytes }) {
      const { namespace } = policy
      const { domain, limits } = candidate.checked
      const key = matchOf(namespace, candidate)
      const winner = byMatch.get(key)
      if (winner !== undefined) return conflictWith(winner, domain)
      const other = levels.conflictOf(domain, limits)
      if (other !== undefined) return mixedWith(other, domain)
      const share = grants.shareOf(namespace)
      const used = bytesOf.get(namespace) ?? 0
      const checked = withFittingKeys(candidate.checked, share - reservedBytes - used)
      const bytes = used + sizeOf(checked)
      if (bytes > (isKept ? share : share - reservedBytes))
        return tooLarge(namespace, sizeOf(checked), share)
      const added = levels.add(domain, checked.limits, nameOf(policy))
      byMatch.set(key, { policy, candidate, limits: added.limits })
      bytesOf.set(namespace, bytes)
      const scope = JSON.stringify([namespace, domain])
      const names = limitNames.get(scope) ?? new Set()
      limitNames.set(scope, names)
      for (const { name } of limits.limits) names.add(name)
      const surplus = (limits.hashes?.length ?? 0) - (checked.limits.hashes?.length ?? 0)
      return acceptedWith(candidate, added, { surplus, share })
    },
    warnings: () =>
      [...byMatch.values()].flatMap(({ policy, candidate: { checked }, limits }) => {
        const { domain } = checked
        const names = limitNames.get(JSON.stringify([policy.namespace, domain]))
        const missing = limits.replaces.find((name) => names?.has(name) !== true)
        if (missing === undefined) return []
        const where = `in domain ${quote(domain)}`
        const cause = `no accepted policy of this namespace has a limit ${quote(missing)} ${where}`
        return [{ policy, message: `spec.replaces has an unknown name: ${cause}` }]
      }),
    domains: () =>
      [...Map.groupBy(byMatch.values(), ({ candidate }) => candidate.checked.domain)]
        .sort(([a], [b]) => compareStrings(a, b))
        .map(([domain, all]) => [domain, all.map(({ limits }) => limits)] as const),
  }
}

/** `namespace/name` of a policy. */
export function nameOf({ namespace, name }: Pick<Policy, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`
}

/** The bytes of its namespace's share that a spec uses. */
function sizeOf({ bytes, limits }: CheckedPolicy): number {
  return bytes + SIZE_OF_ENTRY * (limits.match.length + (limits.hashes?.length ?? 0))
}

/** The bytes of its namespace's share that a spec needs, without API keys. */
export function sizeWithoutKeys(checked: CheckedPolicy): number {
  return sizeOf(withFittingKeys(checked, 0))
}

/** Without the API keys that do not fit into the bytes: the others keep their limit. */
function withFittingKeys(checked: CheckedPolicy, bytesMax: number): CheckedPolicy {
  const { limits, bytes, bytesOfKey } = checked
  const excess = sizeOf(checked) - bytesMax
  if (limits.hashes === undefined || excess <= 0) return checked
  const surplus = Math.ceil(excess / (bytesOfKey + SIZE_OF_ENTRY))
  const count = Math.max(0, limits.hashes.length - surplus)
  const hashes = limits.hashes.slice(0, count)
  const left = bytes - (limits.hashes.length - count) * bytesOfKey
  return { ...checked, limits: { ...limits, hashes }, bytes: left }
}

/** What must differ between the policies of a domain. */
function matchOf(namespace: string, { accepted: { spec }, checked }: Candidate): string {
  const { domain, limits } = checked
  const entries = limits.match.map(({ key, value }) => [key, value])
  const { secretRef, secretSelector } = spec.match.at(-1) ?? {}
  const labels = Object.entries(secretSelector?.matchLabels ?? {}).sort(([a], [b]) =>
    compareStrings(a, b),
  )
  const secrets = secretRef === undefined ? labels : secretRef.name
  return JSON.stringify([domain, entries, ...(limits.hashes ? [namespace, secrets] : [])])
}

/** The outcome of a policy; with API keys, it has their number. */
function acceptedWith(
  { apiKeys }: Candidate,
  { limits, older }: { readonly limits: DescriptorLimits; readonly older: string | undefined },
  { surplus, share }: { readonly surplus: number; readonly share: number },
): PolicyOutcome {
  if (limits.hashes === undefined) return { accepted: true }
  const count = limits.hashes.length
  const shared = (apiKeys?.hashes.length ?? 0) - surplus - count
  const problem = apiKeys?.problem
  const messages = [
    `the limiters receive the policy with ${count} API key${count === 1 ? '' : 's'}`,
    ...(problem === undefined ? [] : [problem.message]),
    ...(older === undefined ? [] : [`${shared} more are in older policies, such as ${older}`]),
    ...(surplus > 0 ? [`${surplus} more do not fit into the namespace's ${share} bytes`] : []),
  ]
  const reason = problem?.reason ?? (surplus > 0 ? 'KeysIgnored' : undefined)
  return { accepted: true, message: messages.join('; '), ...(reason && { reason }) }
}

function mixedWith(
  { key, policy }: { readonly key: string; readonly policy: string },
  domain: string,
): Rejection {
  const cause = `the older policy ${policy} has another kind of values of the key ${quote(key)}`
  const allowed = 'a key has either values or API keys'
  const message = `${cause} in domain ${quote(domain)}: ${allowed}`
  return { accepted: false, reason: 'Conflicted', message }
}

function conflictWith({ policy, candidate }: Added, domain: string): Rejection {
  const { generation } = candidate.accepted
  const isCurrent = generation === policy.generation
  const winner = `the older policy ${nameOf(policy)}`
  const shown = isCurrent ? winner : `generation ${generation} of ${winner}, which stays active,`
  const cause = `${shown} has the same spec.match in domain ${quote(domain)}`
  return { accepted: false, reason: 'Conflicted', message: `${cause}: change or delete one` }
}

function tooLarge(namespace: string, size: number, share: number): Rejection {
  const allowed = `the policies of namespace ${namespace} must have at most ${share} bytes together`
  const message = `${allowed}: with the ${size} bytes of this one, they have more`
  return { accepted: false, reason: 'TooMany', message }
}
