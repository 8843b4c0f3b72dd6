// Plans the checks of a call: which rules it hits, which of them replace others, and the effect of
// each denial. Counts nothing. Also pairs the checks with their decisions.
import type { Decision } from './algorithm.ts'
import type { CounterUpdate } from './counter-store.ts'
import type { LimitRequest } from './descriptor.ts'
import { counterKey, matchDescriptor } from './match.ts'
import type { Rule, RuleSet } from './rule.ts'
import { type CheckedLimit, LimitRequestError, type UncheckedReason } from './verdict.ts'

/** One limit that a call hits. */
export interface Check {
  readonly descriptorIndex: number
  readonly rule: Rule
  /**
   * Hits of the descriptor, or else of the request. The caller sets `update.hits` to 0 if they must
   * not be counted.
   */
  readonly requestedHits: number
  /** The path of the rule in metrics. */
  readonly metricPath: string
  /** The values of the request that select the counter, length-prefixed; see `Match`. */
  readonly values: string
  readonly update: CounterUpdate
}

/** The checks of a call. */
export interface Plan {
  readonly checks: readonly Check[]
  /** By descriptor; valid only for descriptors without a check. */
  readonly uncheckedReasons: readonly UncheckedReason[]
  /** Whether the set contains the domain, even without rules. */
  readonly isDomainKnown: boolean
}

/** Settings of the process for all calls. */
export interface PlanOptions {
  /** No rule denies anything. */
  readonly areAllShadow: boolean
  /** Every rule is a quota. */
  readonly areAllQuotas: boolean
  /** Whether denied hits count in limit overrides. */
  readonly denyConsumes: boolean
}

const SECOND_US = 1_000_000

/** Plans a call. Throws LimitRequestError for a call without a domain or without descriptors. */
export function planChecks(rules: RuleSet, request: LimitRequest, options: PlanOptions): Plan {
  const { domain } = request
  const { denyConsumes } = options
  if (domain === '') throw new LimitRequestError('rate limit domain must not be empty')
  if (request.descriptors.length === 0) {
    throw new LimitRequestError('rate limit descriptor list must not be empty')
  }
  const checks: Check[] = []
  const uncheckedReasons: UncheckedReason[] = []
  const replaced = new Set<string>()
  let isDomainKnown = true
  for (const [at, descriptor] of request.descriptors.entries()) {
    const match = matchDescriptor({ rules, domain, descriptor, denyConsumes })
    uncheckedReasons.push('no-rule')
    if (typeof match === 'string') {
      if (match === 'unknown-domain') isDomainKnown = false
      continue
    }
    const requestedHits = descriptor.hits ?? Math.max(1, request.hits)
    for (const rule of match.rules) {
      for (const name of rule.replaces) replaced.add(name)
      if (rule.limit === undefined) uncheckedReasons[at] = 'unlimited'
      else {
        const key = counterKey(rule, match.values)
        checks.push({
          descriptorIndex: at,
          rule,
          requestedHits,
          metricPath: match.metricPath,
          values: match.values,
          update: {
            key,
            algorithm: rule.algorithm,
            limit: rule.limit,
            hits: requestedHits,
            veto: vetoOf(rule, options),
            isPerSecond: rule.limit.windowUs <= SECOND_US,
          },
        })
      }
    }
  }
  const isReplaced = ({ rule }: Check) => rule.name !== undefined && replaced.has(rule.name)
  const counting = replaced.size === 0 ? checks : checks.filter((check) => !isReplaced(check))
  return { checks: counting, uncheckedReasons, isDomainKnown }
}

function vetoOf(rule: Rule, { areAllShadow, areAllQuotas }: PlanOptions): CounterUpdate['veto'] {
  if (areAllShadow || rule.isShadow) return 'never'
  return areAllQuotas || rule.isQuota ? 'together' : 'alone'
}

/** The checks of a call with their decisions, which have the same order. */
export function pairDecisions(
  checks: readonly Check[],
  decisions: readonly Decision[],
): CheckedLimit[] {
  return checks.map(({ descriptorIndex, rule, requestedHits }, at) => {
    const decision = decisions[at]
    if (decision === undefined) throw new Error('Cannot decide: the decision of a check is missing')
    return { descriptorIndex, rule, requestedHits, decision }
  })
}
