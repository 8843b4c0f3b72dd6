// Sums what the policies in mode Audit would have denied, from the reports of all limiters, and
// decides when a status reports it. Only the sums in the status survive a change of the leader.
import { ruleIdsOf } from '../../policies/rule-ids.ts'
import { formatTime } from '../conditions.ts'
import { keyOf } from '../objects.ts'
import { earliestAfter } from './limiter-count.ts'
import type { RateLimitPolicy, RateLimitPolicyStatus } from './rate-limit-policy.ts'
import type { CompiledPolicy, RuleVersions } from './rule-versions.ts'
import type { PolicyWatch } from './watch-policies.ts'

/** Hits that a rule in mode Audit would have denied since the last report of its limiter. */
export interface RuleHits {
  /** The identifier of the rule, as `ruleIdsOf` returns it. */
  readonly rule: string
  /** A positive integer. */
  readonly hits: number
}

type AuditStatus = NonNullable<RateLimitPolicyStatus['audit']>

/** Dependencies. */
export interface AuditSumsDeps {
  readonly policies: Pick<PolicyWatch, 'list' | 'get'>
  readonly versions: RuleVersions
  readonly nowMs: () => number
  readonly wallMs: () => number
}

/** The sums of the leader. */
export interface AuditSums {
  /**
   * Adds the hits of a report; those of rules that no policy in mode Audit has are ignored. Returns
   * whether a status must be written.
   */
  readonly add: (counts: readonly RuleHits[]) => boolean
  /** What the status must report; `undefined` if the active spec is not in mode Audit. */
  readonly statusOf: (policy: RateLimitPolicy, compiled: CompiledPolicy) => AuditStatus | undefined
  /** When a status must be written even if no limiter reports more; `undefined`: never. */
  readonly nextDueMs: () => number | undefined
}

/** A sum is written to a status at most once in this time, except for the first hits. */
export const AUDIT_WRITE_MS = 5 * 60_000
/** Minimum relative increase of the sum before it is written. */
const INCREASE_MIN = 0.1

interface Sum {
  readonly uid: string
  /** Each active generation has its own sum. */
  readonly generation: number
  readonly startTime: string
  total: number
  lastObservedTime: string | undefined
  /** The sum in the status, and since when. */
  shown: number
  shownAtMs: number
}

/** Creates the sums of a process that has just become the leader. */
export function createAuditSums(deps: AuditSumsDeps): AuditSums {
  const { policies, nowMs, wallMs } = deps
  const owners = createRuleOwners(deps)
  const sums = new Map<string, Sum>()
  const sumOf = (policy: RateLimitPolicy, generation: number): Sum => {
    const { uid } = policy.metadata
    const known = sums.get(keyOf(policy))
    const before = auditOf(policy, generation)
    const isSame = known?.uid === uid && known.generation === generation
    const sum = isSame ? known : newSum({ uid, generation, before }, formatTime(wallMs()))
    if (before !== undefined && before.wouldDeny !== sum.shown) {
      sum.shown = before.wouldDeny
      sum.shownAtMs = nowMs()
      sum.total = Math.max(sum.total, sum.shown) // as written by a previous leader
    }
    sums.set(keyOf(policy), sum)
    return sum
  }
  return {
    add(counts) {
      const owned = owners.read()
      for (const key of sums.keys()) if (!owned.policies.has(key)) sums.delete(key)
      const now = formatTime(wallMs())
      let isDue = false
      for (const { rule, hits } of counts) {
        const owner = owned.byRule.get(rule)
        const policy = owner && policies.get(owner.key)
        if (owner === undefined || policy?.metadata.uid !== owner.uid) continue
        const sum = sumOf(policy, owner.generation)
        sum.total = Math.min(sum.total + hits, Number.MAX_SAFE_INTEGER)
        sum.lastObservedTime = now
        isDue ||= dueMs(sum) <= nowMs()
      }
      return isDue
    },
    statusOf(policy, { active }) {
      if (active?.spec.mode !== 'Audit') return undefined
      const { generation } = active
      const before = auditOf(policy, generation)
      const known = sums.get(keyOf(policy))
      if (known === undefined) return before ?? { wouldDeny: 0, startTime: formatTime(wallMs()) }
      const sum = sumOf(policy, generation)
      const { startTime, total, lastObservedTime } = sum
      if (dueMs(sum) > nowMs()) return before ?? { wouldDeny: sum.shown, startTime }
      return { wouldDeny: total, startTime, ...(lastObservedTime && { lastObservedTime }) }
    },
    nextDueMs: () => earliestAfter(nowMs(), [...sums.values()].map(dueMs).filter(Number.isFinite)),
  }
}

function newSum(
  given: Pick<Sum, 'uid' | 'generation'> & { readonly before: AuditStatus | undefined },
  now: string,
): Sum {
  const { uid, generation, before } = given
  return {
    ...{ uid, generation, startTime: before?.startTime ?? now },
    ...{ total: 0, lastObservedTime: before?.lastObservedTime, shown: 0, shownAtMs: -Infinity },
  }
}

/** What the status reports of this generation. */
function auditOf({ status }: RateLimitPolicy, generation: number): AuditStatus | undefined {
  return status?.accepted?.generation === generation ? status.audit : undefined
}

/** When the status must report the sum; `Infinity`: not before it increases. */
function dueMs({ total, shown, shownAtMs }: Sum): number {
  if (total === shown || total - shown < INCREASE_MIN * shown) return Infinity
  return shown === 0 ? -Infinity : shownAtMs + AUDIT_WRITE_MS
}

interface RuleOwner {
  /** `namespace/name` of the policy. */
  readonly key: string
  readonly uid: string
  readonly generation: number
}

interface RuleOwners {
  /** The policy of each rule in mode Audit. */
  readonly byRule: ReadonlyMap<string, RuleOwner>
  /** The keys of these policies. */
  readonly policies: ReadonlySet<string>
}

/** Finds the policies of rules, once for each compilation. */
function createRuleOwners({ policies, versions }: Pick<AuditSumsDeps, 'policies' | 'versions'>) {
  const ids = new WeakMap<CompiledPolicy, readonly string[]>()
  const idsOf = (compiled: CompiledPolicy, spec: Parameters<typeof ruleIdsOf>[0]) => {
    const known = ids.get(compiled) ?? ruleIdsOf(spec, compiled.hashes)
    ids.set(compiled, known)
    return known
  }
  let owners: RuleOwners = { byRule: new Map(), policies: new Set() }
  let compilation = 0
  return {
    read(): RuleOwners {
      const newest = versions.numberOf(versions.newest())
      if (newest === compilation) return owners
      compilation = newest
      const byRule = new Map<string, RuleOwner>()
      const keys = new Set<string>()
      const isAudit = (policy: RateLimitPolicy) =>
        versions.get(keyOf(policy))?.active?.spec.mode === 'Audit'
      for (const policy of policies.list().filter(isAudit).sort(compareAge)) {
        const key = keyOf(policy)
        const compiled = versions.get(key)
        const { active } = compiled ?? {}
        if (compiled === undefined || active === undefined) continue
        keys.add(key)
        const owner = { key, uid: compiled.uid, generation: active.generation }
        // Of several policies with the same API key, the rules contain it for the oldest.
        for (const id of idsOf(compiled, active.spec)) if (!byRule.has(id)) byRule.set(id, owner)
      }
      owners = { byRule, policies: keys }
      return owners
    },
  }
}

function compareAge(one: RateLimitPolicy, other: RateLimitPolicy): number {
  const [a, b] = [ageOf(one), ageOf(other)]
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The sort key: creation time, namespace and name, as in the compiler. */
function ageOf({ metadata }: RateLimitPolicy): string {
  const { creationTimestamp = '', namespace, name } = metadata
  return `${creationTimestamp} ${namespace} ${name}`
}
