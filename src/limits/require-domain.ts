// Rejects a set without rules for the domain that the client sends, because such a set would admit
// every request.
import type { ParsedRuleFiles } from './rules.ts'

/** The parsed set, or a fault in `place` if it has no rules for `domain`; '' requires nothing. */
export function requireDomain(
  parsed: ParsedRuleFiles,
  { domain, place }: { readonly domain: string; readonly place: string },
): ParsedRuleFiles {
  if ('faults' in parsed || domain === '' || parsed.rules.has(domain)) return parsed
  const others = [...parsed.rules.keys()].map((name) => `'${name}'`).join(', ')
  const found = others === '' ? 'there are no rules' : `the domains with rules are ${others}`
  const message = `no file has rules for the required domain '${domain}': ${found}`
  return { faults: [{ file: place, line: 1, message }] }
}
