// Counts hits beyond the limits of rules in shadow mode until they are reported to the controller,
// in bounded memory, and defines the format of the reports. Sends nothing.
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

/** Maximum rules in a report, which is then below 64 KiB; others wait for the next report. */
const RULES_MAX = 1000
/** Maximum number of rules that are counted between two reports; hits of others are ignored. */
const RULES_COUNTED_MAX = 10_000
const COUNT = /^([\w-]{22})=([1-9]\d{0,15})$/

/** The hits that have not been reported yet. */
export class AuditCounts {
  /** By rule id, because each version of the rules has its own objects. */
  readonly #hits = new Map<string, number>()
  readonly #ids = new WeakMap<Rule, string>()

  /** Counts hits that the rule would have denied. */
  count(rule: Rule, hits: number): void {
    if (hits <= 0) return
    const id = this.#ids.get(rule) ?? ruleIdOf(rule)
    this.#ids.set(rule, id)
    const before = this.#hits.get(id) ?? 0
    if (before === 0 && this.#hits.size >= RULES_COUNTED_MAX) return
    this.#hits.set(id, Math.min(before + hits, Number.MAX_SAFE_INTEGER))
  }

  /** Removes and returns the hits for one report; empty if there are none. */
  take(): readonly string[] {
    const reported = [...this.#hits].slice(0, RULES_MAX)
    for (const [id] of reported) this.#hits.delete(id)
    return reported.map(([id, hits]) => `${id}=${hits}`)
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
