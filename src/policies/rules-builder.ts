// Adds policies to the rules, from the oldest to the youngest, unless they conflict with an older
// one or exceed the share of their namespace.
import type { Candidate } from './candidates.ts'
import { type CheckedPolicy, type GrantIndex, quote, type Rejection } from './check-policy.ts'
import { createKeyLevels, type LevelConflict, type OwnKeys } from './key-levels.ts'
import type { ApiKeys, Policy, PolicyOutcome } from './policy.ts'
import { DESCRIPTOR_OVERHEAD_BYTES } from './shares.ts'
import type { DescriptorLimits } from './descriptor-limits.ts'
import { compareStrings } from './write-config.ts'

/** Options of adding a spec. */
interface AddOptions {
  /**
   * Bytes of the share that are reserved for the last accepted specs of younger policies; a changed
   * spec and API keys cannot use them.
   */
  readonly reservedBytes: number
  /** Whether this is the last accepted spec. */
  readonly isPrevious: boolean
}

/** Collects the accepted policies. */
export interface RulesBuilder {
  /** Adds a spec of a policy, or returns why it was not added. */
  readonly add: (policy: Policy, candidate: Candidate, options: AddOptions) => PolicyOutcome
  /** The policies with names in `replaces` that no limit has. */
  readonly warnings: () => readonly { readonly policy: Policy; readonly message: string }[]
  /** The accepted policies, in the order in which they were added. */
  readonly added: () => readonly Added[]
  /** The limits by domain, sorted. */
  readonly domains: () => readonly (readonly [string, readonly DescriptorLimits[]])[]
}

/** An accepted policy. */
export interface Added {
  readonly policy: Policy
  readonly candidate: Candidate
  /** Its limits in the rules, with only those API keys that fit. */
  readonly limits: DescriptorLimits
}

/** Creates a builder without policies. */
export function createRulesBuilder(grants: GrantIndex): RulesBuilder {
  const byMatch = new Map<string, Added>()
  const levels = createKeyLevels()
  const bytesOf = new Map<string, number>()
  /** The names of limits by namespace and domain, which `replaces` can contain. */
  const limitNames = new Map<string, Set<string>>()
  return {
    add(policy, candidate, { isPrevious, reservedBytes }) {
      const { namespace } = policy
      const { domain, limits } = candidate.checked
      const key = uniqueKeyOf(namespace, candidate)
      const winner = byMatch.get(key)
      if (winner !== undefined) return conflictRejection(winner, domain)
      const policyLevels = levels.of(domain, limits)
      const other = policyLevels.conflict()
      if (other !== undefined) return mixedRejection(other, domain)
      const share = grants.shareOf(namespace)
      const used = bytesOf.get(namespace) ?? 0
      const own = policyLevels.ownKeys()
      const unshared = withHashes(candidate.checked, own.hashes)
      const checked = withFittingKeys(unshared, share - reservedBytes - used)
      const bytes = used + sizeOf(checked)
      if (bytes > (isPrevious ? share : share - reservedBytes))
        return tooLarge(namespace, sizeOf(checked), share)
      const { hashes } = checked.limits
      policyLevels.add(hashes, nameOf(policy))
      byMatch.set(key, { policy, candidate, limits: checked.limits })
      bytesOf.set(namespace, bytes)
      const scope = JSON.stringify([namespace, domain])
      const names = limitNames.get(scope) ?? new Set()
      limitNames.set(scope, names)
      for (const { name } of candidate.accepted.spec.limits) names.add(name)
      return acceptedWith(candidate.apiKeys ?? { hashes: [] }, own, { hashes, share })
    },
    warnings: () =>
      [...byMatch.values()].flatMap(({ policy, candidate: { accepted, checked } }) => {
        const { domain } = checked
        const names = limitNames.get(JSON.stringify([policy.namespace, domain]))
        const missing = accepted.spec.replaces?.find((name) => names?.has(name) !== true)
        if (missing === undefined) return []
        const where = `in domain ${quote(domain)}`
        const cause = `no accepted policy of this namespace has a limit ${quote(missing)} ${where}`
        return [{ policy, message: `spec.replaces has an unknown name: ${cause}` }]
      }),
    added: () => [...byMatch.values()],
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
  return bytes + DESCRIPTOR_OVERHEAD_BYTES * (limits.match.length + (limits.hashes?.length ?? 0))
}

/** The bytes of its namespace's share that a spec needs, without API keys. */
export function sizeWithoutKeys(checked: CheckedPolicy): number {
  return sizeOf(withFittingKeys(checked, 0))
}

/** Drops the API keys that do not fit into `bytesMax`; the limits still apply to the others. */
function withFittingKeys(checked: CheckedPolicy, bytesMax: number): CheckedPolicy {
  const { hashes } = checked.limits
  const excess = sizeOf(checked) - bytesMax
  if (hashes === undefined || excess <= 0) return checked
  const surplus = Math.ceil(excess / (checked.bytesPerKey + DESCRIPTOR_OVERHEAD_BYTES))
  return withHashes(checked, hashes.slice(0, Math.max(0, hashes.length - surplus)))
}

/** The policy with only these API keys. */
function withHashes(checked: CheckedPolicy, hashes: readonly string[] | undefined): CheckedPolicy {
  const { limits, bytes, bytesPerKey } = checked
  if (hashes === undefined || hashes === limits.hashes) return checked
  const removed = (limits.hashes?.length ?? 0) - hashes.length
  return { ...checked, limits: { ...limits, hashes }, bytes: bytes - removed * bytesPerKey }
}

/** The domain and match of a policy, as a string; accepted policies must differ in it. */
function uniqueKeyOf(namespace: string, { accepted: { spec }, checked }: Candidate): string {
  const { domain, limits } = checked
  const entries = limits.match.map(({ key, value }) => [key, value])
  const { secretRef, secretSelector } = spec.match.at(-1) ?? {}
  const labels = Object.entries(secretSelector?.matchLabels ?? {}).sort(([a], [b]) =>
    compareStrings(a, b),
  )
  const secrets = secretRef === undefined ? labels : secretRef.name
  return JSON.stringify([domain, entries, ...(limits.hashes ? [namespace, secrets] : [])])
}

/** The outcome of an accepted policy; with Secrets, the message has the number of API keys. */
function acceptedWith(
  { problem, ...selected }: ApiKeys,
  own: OwnKeys,
  { hashes, share }: { readonly hashes: readonly string[] | undefined; readonly share: number },
): PolicyOutcome {
  if (hashes === undefined || own.hashes === undefined) return { accepted: true }
  const count = hashes.length
  const shared = selected.hashes.length - own.hashes.length
  const surplus = own.hashes.length - count + (selected.surplus ?? 0)
  const messages = [
    `the limiters receive the policy with ${count} API key${count === 1 ? '' : 's'}`,
    ...(problem === undefined ? [] : [problem.message]),
    ...(own.olderPolicy === undefined
      ? []
      : [`${shared} more belong to older policies, such as ${own.olderPolicy}`]),
    ...(surplus > 0 ? [`${surplus} more do not fit into the namespace's ${share} bytes`] : []),
  ]
  const reason = problem?.reason ?? (surplus > 0 ? 'KeysIgnored' : undefined)
  return { accepted: true, message: messages.join('; '), ...(reason && { reason }) }
}

function mixedRejection({ key, policy, isHashed }: LevelConflict, domain: string): Rejection {
  const kinds = ['API keys', 'plain values']
  const [theirs, own] = isHashed ? kinds : kinds.toReversed()
  const cause = `the older policy ${policy} matches ${theirs} of the key ${quote(key)}`
  const place = `in domain ${quote(domain)}, and this one ${own}`
  const message = `${cause} ${place}: after the same entries, a key can match only one kind`
  return { accepted: false, reason: 'Conflicted', message }
}

function conflictRejection({ policy, candidate }: Added, domain: string): Rejection {
  const { generation } = candidate.accepted
  const isCurrent = generation === policy.generation
  const winner = `the older policy ${nameOf(policy)}`
  const shown = isCurrent ? winner : `generation ${generation} of ${winner}, which stays active,`
  const cause = `${shown} has the same spec.match in domain ${quote(domain)}`
  return { accepted: false, reason: 'Conflicted', message: `${cause}: change or delete one` }
}

function tooLarge(namespace: string, size: number, share: number): Rejection {
  const cause = `the policies of namespace ${namespace} exceed their share of ${share} bytes`
  const message = `${cause}: this one needs ${size} bytes`
  return { accepted: false, reason: 'TooMany', message }
}
