// Which version of the rules contains which generation of a policy. A version has the number of the
// last compilation that resulted in it; a policy is in every version since its last change.
import { isDeepStrictEqual } from 'node:util'
import type { Compilation } from '../../policies/compile.ts'
import type { AcceptedSpec, Policy, PolicyOutcome } from '../../policies/policy.ts'
import { keyOf } from '../objects.ts'
import type { UnreportedSpec } from './accepted-specs.ts'
import type { RateLimitPolicy } from './rate-limit-policy.ts'

/** A policy in the newest compilation; the same object as long as nothing changes. */
export interface CompiledPolicy {
  readonly uid: string
  readonly generation: number
  readonly outcome: PolicyOutcome
  /** The spec that the rules contain. */
  readonly active: AcceptedSpec | undefined
  /** The spec that was accepted last. */
  readonly accepted: AcceptedSpec | undefined
  /** The hashes of the API keys in `active`. */
  readonly hashes: readonly string[] | undefined
  /** The first compilation with `active` and `hashes`. */
  readonly since: number
}

/** The versions that were compiled. */
export interface RuleVersions {
  /** Records a compilation of `policies`. */
  readonly record: (policies: readonly Policy[], compilation: Compilation) => void
  /** A policy of the newest compilation by `namespace/name`. */
  readonly get: (key: string) => CompiledPolicy | undefined
  /** The spec of a policy that was accepted last, even if its status does not have it yet. */
  readonly lastAcceptedOf: (policy: RateLimitPolicy) => AcceptedSpec | undefined
  /** The specs that were accepted last, of those policies whose status does not have them yet. */
  readonly unreported: (policies: readonly RateLimitPolicy[]) => readonly UnreportedSpec[]
  /** The number of a version; 0 if it is unknown. */
  readonly numberOf: (version: string) => number
  /** The newest version; empty before the first compilation. */
  readonly newest: () => string
}

/** Recorded versions: a limiter with an older one counts as a limiter without rules. */
const VERSIONS_MAX = 1000

/**
 * Creates the record of a process that has compiled nothing; `stored` has the specs, by uid, that
 * the previous leader accepted, perhaps without reporting them.
 */
export function createRuleVersions(
  stored: ReadonlyMap<string, AcceptedSpec> = new Map(),
): RuleVersions {
  const numbers = new Map<string, number>()
  let compiled: ReadonlyMap<string, CompiledPolicy> = new Map()
  let [last, newest] = [0, '']
  return {
    record(policies, { version, outcomes, active }) {
      last++
      newest = version
      numbers.delete(version)
      numbers.set(version, last)
      const [oldest] = numbers.keys()
      if (numbers.size > VERSIONS_MAX && oldest !== undefined) numbers.delete(oldest)
      const next = new Map<string, CompiledPolicy>()
      for (const policy of policies) {
        const key = `${policy.namespace}/${policy.name}`
        const outcome = outcomes.get(key)
        if (outcome === undefined) throw new Error(`the compilation has no outcome of ${key}`)
        const result = { outcome, active: active.get(key) }
        next.set(key, resultOf(policy, result, { before: compiled.get(key), number: last }))
      }
      compiled = next
    },
    get: (key) => compiled.get(key),
    lastAcceptedOf(policy) {
      const known = compiled.get(keyOf(policy))
      const { uid } = policy.metadata
      if (known?.uid === uid) return known.accepted
      const { accepted } = policy.status ?? {}
      const before = stored.get(uid)
      if (before === undefined || before.generation <= generationOf(accepted)) return accepted
      return { generation: before.generation, spec: before.spec }
    },
    unreported: (policies) =>
      policies.flatMap((policy) => {
        const { uid } = policy.metadata
        const known = compiled.get(keyOf(policy))
        if (known?.accepted === undefined || known.uid !== uid) return []
        const { generation, spec } = known.accepted
        if (generation <= generationOf(policy.status?.accepted)) return []
        return [{ uid, generation, spec }]
      }),
    numberOf: (version) => numbers.get(version) ?? 0,
    newest: () => newest,
  }
}

function generationOf(accepted: AcceptedSpec | undefined): number {
  return accepted?.generation ?? 0
}

function resultOf(
  policy: Policy,
  { outcome, active }: Pick<CompiledPolicy, 'outcome' | 'active'>,
  previous: { readonly before: CompiledPolicy | undefined; readonly number: number },
): CompiledPolicy {
  const { uid, generation, accepted } = policy
  const before = previous.before?.uid === uid ? previous.before : undefined
  const hashes = hashesOf(policy, active)
  const isSameActive =
    isDeepStrictEqual(before?.active, active) && isDeepStrictEqual(before?.hashes, hashes)
  const since = before !== undefined && isSameActive ? before.since : previous.number
  const last = accepted && { generation: accepted.generation, spec: accepted.spec }
  const result = { uid, generation, outcome, active, accepted: active ?? last, hashes, since }
  return isDeepStrictEqual(before, result) ? (before ?? result) : result
}

function hashesOf(
  { generation, apiKeys, accepted }: Policy,
  active: AcceptedSpec | undefined,
): readonly string[] | undefined {
  const keys = active?.generation === generation ? apiKeys : accepted?.apiKeys
  return keys?.hashes
}
