// Which version of the rules contains which generation of a policy. A version has the number of the
// last compilation that resulted in it; a policy is in every version since its last change.
import type { Compilation } from '../../policies/compile.ts'
import type { Policy, PolicyOutcome } from '../../policies/policy.ts'

/** A policy in the newest compilation. */
interface CompiledPolicy {
  readonly uid: string
  readonly generation: number
  readonly outcome: PolicyOutcome
  /** The first compilation with this generation and this outcome. */
  readonly since: number
}

/** The versions that were compiled. */
export interface RuleVersions {
  /** Records a compilation of `policies`. */
  readonly record: (policies: readonly Policy[], compilation: Compilation) => void
  /** A policy of the newest compilation by `namespace/name`. */
  readonly get: (key: string) => CompiledPolicy | undefined
  /** The number of a version; 0 if it is unknown. */
  readonly numberOf: (version: string) => number
  /** The newest version; empty before the first compilation. */
  readonly newest: () => string
}

/** A limiter that still has an older version counts as one without rules. */
const VERSIONS_MAX = 1000

/** Creates the record of a process that has compiled nothing. */
export function createRuleVersions(): RuleVersions {
  const numbers = new Map<string, number>()
  let compiled: ReadonlyMap<string, CompiledPolicy> = new Map()
  let [last, newest] = [0, '']
  return {
    record(policies, { version, outcomes }) {
      last++
      newest = version
      numbers.delete(version)
      numbers.set(version, last)
      const [oldest] = numbers.keys()
      if (numbers.size > VERSIONS_MAX && oldest !== undefined) numbers.delete(oldest)
      const next = new Map<string, CompiledPolicy>()
      for (const { namespace, name, uid, generation } of policies) {
        const key = `${namespace}/${name}`
        const outcome = outcomes.get(key)
        if (outcome === undefined) throw new Error(`the compilation has no outcome of ${key}`)
        const before = compiled.get(key)
        const isUnchanged =
          before?.uid === uid &&
          before.generation === generation &&
          before.outcome.accepted === outcome.accepted
        next.set(key, { uid, generation, outcome, since: isUnchanged ? before.since : last })
      }
      compiled = next
    },
    get: (key) => compiled.get(key),
    numberOf: (version) => numbers.get(version) ?? 0,
    newest: () => newest,
  }
}
