// Identifies a rule with its limit, in limiters and in the controller that compiles the rules.
import { counterKey } from './match.ts'
import type { Rule } from './rule.ts'
import { lengthPrefixed } from './rule-tree.ts'

/** 22 characters, unique in a set of rules; they change if the limit of the rule changes. */
export function ruleIdOf(rule: Rule): string {
  const { requests, burst } = rule.limit ?? {}
  return counterKey(rule, lengthPrefixed(String(requests)) + lengthPrefixed(String(burst)))
}
