// The hits that rules in shadow mode did not deny, until they are reported to the controller, and
// the form of the reports. In bounded memory; sends nothing.
import { ruleIdOf } from '../../limits/rule-id.ts'
import type { Rule } from '../../limits/rule.ts'

/** The type of requests that report counts, each as a resource name `<rule>=<hits>`. */
export const AUDIT_TYPE_URL = 'type.googleapis.com/curtail.dev.v1alpha1.AuditCounts'

/** Hits beyond the limit of a rule in shadow mode. */
export interface RuleHits {
  /** The identifier of the rule: see `ruleIdOf`. */
  readonly rule: string
  readonly hits: number
}

/** A report has at most so many rules: less than 64 KiB. The hits of more rules are not counted. */
const RULES_MAX = 1000
const COUNT = /^([\w-]{22})=([1-9]\d{0,15})$/

/** The hits since the last report. */
export class AuditCounts {
  readonly #hits = new Map<Rule, number>()

  /** Counts hits that the rule would have denied. */
  count(rule: Rule, hits: number): void {
    const before = this.#hits.get(rule) ?? 0
    if (hits <= 0 || (before === 0 && this.#hits.size >= RULES_MAX)) return
    this.#hits.set(rule, Math.min(before + hits, Number.MAX_SAFE_INTEGER))
  }

  /** Takes the hits for one report; empty: none. */
  take(): readonly string[] {
    const counts = [...this.#hits].map(([rule, hits]) => `${ruleIdOf(rule)}=${hits}`)
    this.#hits.clear()
    return counts
  }
}

/** Parses a report; `undefined`: it is malformed. */
export function parseAuditCounts(names: readonly string[]): readonly RuleHits[] | undefined {
  if (names.length > RULES_MAX) return undefined
  const counts: RuleHits[] = []
  for (const name of names) {
    const [, rule, digits] = COUNT.exec(name) ?? []
    const hits = Number(digits)
    if (rule === undefined || !Number.isSafeInteger(hits)) return undefined
    counts.push({ rule, hits })
  }
  return counts
}
