// Identifies a rule with its limit, in limiters and in the controller that compiles the rules.
import { counterKey } from './match.ts'
import type { Rule } from './rule.ts'
import { lengthPrefixed } from './rule-tree.ts'

/** 22 characters that differ between all rules of a set, and if the limit of a rule changes. */
export function ruleIdOf(rule: Rule): string {
  const { requests, burst } = rule.limit ?? {}
  return counterKey(rule, lengthPrefixed(String(requests)) + lengthPrefixed(String(burst)))
}
