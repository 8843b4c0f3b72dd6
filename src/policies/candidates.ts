// The specs of each policy that the rules can contain: the current one, else the last accepted one.
// Checks are cached: a compilation checks only what has changed since the previous one.
import { checkPolicy, type CheckedPolicy, type GrantIndex, type Rejection } from './check-policy.ts'
import type { AcceptedSpec, ApiKeys, Policy, PolicySpec } from './policy.ts'

/** A valid spec. */
export interface Candidate {
  readonly accepted: AcceptedSpec
  readonly apiKeys: ApiKeys | undefined
  readonly checked: CheckedPolicy
}

/** The specs of a policy that the rules can contain. */
export interface Candidates {
  readonly policy: Policy
  readonly current: Candidate | Rejection
  /**
   * The last accepted spec, if it is still valid; the same object as `current` if the policy and
   * its domain are unchanged.
   */
  readonly last: Candidate | undefined
}

interface Input {
  readonly spec: PolicySpec
  readonly generation: number
  readonly apiKeys?: ApiKeys | undefined
}

interface CachedCheck extends Input {
  readonly result: Candidate | Rejection
}

/**
 * Creates a function that returns the candidates of policies, in the same order. It keeps the
 * checks of its previous call.
 */
export function createCandidates(
  grants: GrantIndex,
): (policies: readonly Policy[]) => readonly Candidates[] {
  let cached: ReadonlyMap<string, readonly CachedCheck[]> = new Map()
  return (policies) => {
    const next = new Map<string, CachedCheck[]>()
    const all = policies.map((policy) => {
      const key = `${policy.namespace}/${policy.name}`
      const checks: CachedCheck[] = []
      next.set(key, checks)
      return candidatesOf(policy, (input) => {
        const before = cached.get(key)?.find((each) => isSameInput(each, input))
        const check = before ?? { ...input, result: checkInput(policy, input, grants) }
        checks.push(check)
        return check.result
      })
    })
    cached = next
    return all
  }
}

function candidatesOf(policy: Policy, check: (input: Input) => Candidate | Rejection): Candidates {
  const { spec, generation, apiKeys, accepted } = policy
  const isUnchanged = accepted?.generation === generation
  const own = { spec, generation, apiKeys }
  let current = check(own)
  if (isUnchanged && spec.domain === undefined) {
    // An unchanged policy without spec.domain keeps the domain for which it was accepted, even if
    // its namespace may write to further domains.
    const { domain = '' } = accepted.spec
    const kept = domain === '' ? current : check({ ...own, spec: { ...spec, domain } })
    if (!('reason' in kept)) current = kept
  }
  if (accepted === undefined) return { policy, current, last: undefined }
  const isUnchangedInDomain =
    isUnchanged && !('reason' in current) && current.checked.domain === accepted.spec.domain
  const last = isUnchangedInDomain ? current : check(accepted)
  return { policy, current, last: 'reason' in last ? undefined : last }
}

function checkInput(policy: Policy, input: Input, grants: GrantIndex): Candidate | Rejection {
  const { spec, generation, apiKeys } = input
  const { namespace } = policy
  const checked = checkPolicy({ namespace, spec, ...(apiKeys && { apiKeys }) }, grants)
  if ('reason' in checked) return checked
  const { domain } = checked
  const resolved = spec.domain === domain ? spec : { ...spec, domain }
  return { accepted: { generation, spec: resolved }, apiKeys, checked }
}

function isSameInput(one: Input, other: Input): boolean {
  return (
    one.generation === other.generation &&
    one.apiKeys === other.apiKeys && // the same object while the keys do not change
    (one.spec === other.spec || JSON.stringify(one.spec) === JSON.stringify(other.spec))
  )
}
