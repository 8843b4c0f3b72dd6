// Explains to an operator which rules a descriptor matches, and reads their counters without
// counting a hit.
import type { Descriptor } from '../../limits/descriptor.ts'
import { explainMatch } from '../../limits/describe-rules.ts'
import { planChecks, type PlanOptions } from '../../limits/plan-checks.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { capacityOf } from '../../limits/verdict.ts'
import { type GuardedStore, isUndecided } from './guard-store.ts'

/** Dependencies of the explanation. */
export interface ExplainLimitsDeps {
  readonly rules: () => RuleSet
  readonly store: Pick<GuardedStore, 'decide'>
  readonly options: PlanOptions
}

/** A descriptor, and the domain of its rules. */
export interface ExplainRequest {
  readonly domain: string
  readonly descriptor: Descriptor
}

/** Explains a descriptor; resolves to readable lines within the deadline of the store. */
export type ExplainLimits = (request: ExplainRequest) => Promise<readonly string[]>

/** Creates the use case. */
export function createExplainLimits({ rules, store, options }: ExplainLimitsDeps): ExplainLimits {
  return async ({ domain, descriptor }) => {
    const set = rules()
    const lines = explainMatch({ rules: set, domain, descriptor })
    const peek = { domain, descriptors: [{ ...descriptor, hits: 0 }], hits: 1 }
    const { checks } = planChecks(set, peek, options)
    if (checks.length === 0) return lines
    const decisions = await store.decide(checks.map(({ update }) => update))
    if (isUndecided(decisions)) return [...lines, 'counters: unknown, Redis is slow or unavailable']
    const counters = checks.map(({ rule }, at) => {
      const { remaining = 0, resetUs = 0 } = decisions[at] ?? {}
      const name = rule.name === undefined ? '' : ` (${rule.name})`
      const seconds = (resetUs / 1_000_000).toFixed(1)
      const isWhole = remaining >= capacityOf(rule) || resetUs === 0
      const wait = isWhole ? '' : `, full limit available in ${seconds} s`
      return `counter of ${rule.path}${name}: ${remaining} remaining${wait}`
    })
    return [...lines, ...counters]
  }
}
