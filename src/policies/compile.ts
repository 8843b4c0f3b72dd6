// Compiles RateLimitPolicies into the rules that the limiters receive by xDS. Pure: the same
// policies and grants, in any order, result in the same bytes.
import { createHash } from 'node:crypto'
import {
  type Added,
  createRulesBuilder,
  nameOf,
  type RulesBuilder,
  sizeWithoutKeys,
} from './rules-builder.ts'
import { type Candidate, type Candidates, createCandidates } from './candidates.ts'
import { type GrantIndex, indexGrants } from './check-policy.ts'
import type { AcceptedSpec, DomainGrant, Policy, PolicyOutcome } from './policy.ts'
import { createKeySelection } from './select-keys.ts'
import { compareStrings, writeConfig } from './write-config.ts'

/** The rules of all accepted policies. */
export interface Compilation {
  /** A hash of the resources. */
  readonly version: string
  /** Serialized RateLimitConfigs, one for each domain with policies, sorted by domain. */
  readonly resources: readonly Uint8Array[]
  /** By `namespace/name`. */
  readonly outcomes: ReadonlyMap<string, PolicyOutcome>
  /**
   * The specs that the rules contain, by `namespace/name`. For a policy that is not accepted: its
   * last accepted spec, if that can still be accepted.
   */
  readonly active: ReadonlyMap<string, AcceptedSpec>
}

/** A compilation, with the policies by age; those beyond POLICIES_MAX are last. */
export interface CompiledPolicies extends Compilation {
  /** The policies. Those in the rules have exactly the API keys that the rules contain. */
  readonly policies: readonly Policy[]
}

/** Maximum number of policies of a namespace; younger ones are rejected without a check. */
export const POLICIES_MAX = 1000
const VERSION_LENGTH = 32

/** Compiles the policies, as `createCompiler` describes. */
export function compile(
  policies: readonly Policy[],
  grants: readonly DomainGrant[],
): CompiledPolicies {
  return createCompiler(grants)(policies)
}

/**
 * Creates a compiler, which checks only policies that differ from those of its previous call. Of
 * two policies with the same domain and match, the older is accepted. The rules contain the spec of
 * a policy, or else its last accepted spec.
 */
export function createCompiler(
  grants: readonly DomainGrant[],
): (policies: readonly Policy[]) => CompiledPolicies {
  const index = indexGrants(grants)
  const selectKeys = createKeySelection(index)
  const candidates = createCandidates(index)
  return (policies) => {
    const { considered, surplus } = splitByAge(policies)
    const { rules, results } = addAll(index, candidates(selectKeys(considered)))
    const added = new Map(rules.added().map((each) => [each.policy, each]))
    const outcomes = new Map<string, PolicyOutcome>()
    const active = new Map<string, AcceptedSpec>()
    for (const { policy, outcome } of results) {
      const name = nameOf(policy)
      outcomes.set(name, outcome)
      const accepted = added.get(policy)?.candidate.accepted
      if (accepted !== undefined) active.set(name, accepted)
    }
    for (const { policy, message } of rules.warnings()) {
      const outcome = outcomes.get(nameOf(policy))
      if (outcome?.accepted !== true) continue
      const all = outcome.message === undefined ? message : `${outcome.message}; ${message}`
      outcomes.set(nameOf(policy), { ...outcome, message: all })
    }
    for (const policy of surplus) outcomes.set(nameOf(policy), tooMany)
    const resources = rules.domains().map(([domain, all]) => writeConfig(domain, all))
    const given = results.map(({ policy }) => withKeysOf(policy, added.get(policy)))
    const version = versionOf(resources)
    return { version, resources, outcomes, active, policies: [...given, ...surplus] }
  }
}

function withKeysOf(policy: Policy, added: Added | undefined): Policy {
  const { hashes } = added?.limits ?? {}
  if (hashes === undefined) return policy
  const apiKeys = { hashes }
  const { accepted } = policy
  return { ...policy, apiKeys, ...(accepted && { accepted: { ...accepted, apiKeys } }) }
}

/** The oldest POLICIES_MAX policies of each namespace, by age, and the others. */
function splitByAge(policies: readonly Policy[]) {
  const counts = new Map<string, number>()
  const { considered = [], surplus = [] } = Object.groupBy(
    policies.toSorted(compareAge),
    ({ namespace }) => {
      const count = (counts.get(namespace) ?? 0) + 1
      counts.set(namespace, count)
      return count > POLICIES_MAX ? 'surplus' : 'considered'
    },
  )
  return { considered, surplus }
}

function compareAge(a: Policy, b: Policy): number {
  return (
    a.createdMs - b.createdMs ||
    compareStrings(a.namespace, b.namespace) ||
    compareStrings(a.name, b.name)
  )
}

interface Pass {
  readonly rules: RulesBuilder
  readonly results: readonly Result[]
}

interface Result {
  readonly policy: Policy
  readonly outcome: PolicyOutcome
  /** The spec of the policy that the rules contain, if any. */
  readonly added: Candidate | undefined
}

/**
 * Maximum number of passes. In each pass, changes can use the bytes that changes of the previous
 * pass released.
 */
const PASSES_MAX = 5

/** Adds the policies in passes, until one changes nothing (a fixed point) or after PASSES_MAX. */
function addAll(grants: GrantIndex, all: readonly Candidates[]): Pass {
  let given = all
  let latest = addOnce(grants, given)
  for (let passes = 1; passes < PASSES_MAX; passes++) {
    if (!latest.results.some(({ outcome }) => lacksBytes(outcome))) break
    const next = given.map((each, at) => {
      const { added = each.last } = latest.results[at] ?? {}
      return added === each.last ? each : { ...each, last: added }
    })
    if (next.every((each, at) => each === given[at])) break
    given = next
    latest = addOnce(grants, given)
  }
  return latest
}

/** Whether more available bytes could change the outcome. */
function lacksBytes({ reason }: PolicyOutcome): boolean {
  return reason === 'TooMany' || reason === 'KeysIgnored'
}

/** Adds the current spec of each policy, or else its last accepted one. */
function addOnce(grants: GrantIndex, all: readonly Candidates[]): Pass {
  const rules = createRulesBuilder(grants)
  const reserved = new Map<string, number>()
  const reserve = ({ policy: { namespace }, last }: Candidates, factor: 1 | -1) => {
    if (last === undefined) return
    reserved.set(namespace, (reserved.get(namespace) ?? 0) + factor * sizeWithoutKeys(last.checked))
  }
  for (const each of all) reserve(each, 1)
  const results = all.map((each): Result => {
    const { policy, current, last } = each
    reserve(each, -1)
    const reservedBytes = reserved.get(policy.namespace) ?? 0
    const addLast = () => {
      const isAdded = last && rules.add(policy, last, { reservedBytes, isPrevious: true }).accepted
      return isAdded === true ? last : undefined
    }
    if ('reason' in current) return { policy, outcome: current, added: addLast() }
    const isPrevious = current === last
    const outcome = rules.add(policy, current, { reservedBytes, isPrevious })
    if (outcome.accepted) return { policy, outcome, added: current }
    return { policy, outcome, added: isPrevious ? undefined : addLast() }
  })
  return { rules, results }
}

const tooMany: PolicyOutcome = {
  ...{ accepted: false, reason: 'TooMany' },
  message: `the namespace has ${POLICIES_MAX} older policies: delete those that are not needed`,
}

function versionOf(resources: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const bytes of resources) hash.update(`${bytes.length}:`).update(bytes)
  return hash.digest('hex').slice(0, VERSION_LENGTH)
}
