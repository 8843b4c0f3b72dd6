// Rules files for unit tests: a minimal file around the tested lines, and its faults.
import { renderFault } from '../../src/limits/rule-fault.ts'
import { parseRules } from '../../src/limits/parse-rules.ts'
import type { RuleSet } from '../../src/limits/rule.ts'

/** The faults of one file, without its name: `line: message`. */
export function faultsOf(text: string): string[] {
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  return 'faults' in parsed ? parsed.faults.map((each) => renderFault(each).slice(2)) : []
}

/** The rules of one file. Throws its first fault. */
export function rulesOf(text: string): RuleSet {
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  return parsed.rules
}

/** A file with one descriptor; `lines` start at line 4. */
export const file = (...lines: string[]) =>
  ['domain: d', 'descriptors:', '- key: k', ...lines.map((line) => `  ${line}`), ''].join('\n')

/** A file with one limit; `lines` start at line 5. */
export const limit = (...lines: string[]) =>
  file('rate_limit:', ...lines.map((line) => `  ${line}`))
