// A set of rules must have rules of the domain that its caller sends: with rules of another domain
// only, every request would be admitted.
import type { ParsedRuleFiles } from './rules.ts'

/** The parsed set, or a fault if it lacks `domain`; an empty `domain` requires nothing. */
export function requireDomain(
  parsed: ParsedRuleFiles,
  { domain, place }: { readonly domain: string; readonly place: string },
): ParsedRuleFiles {
  if ('faults' in parsed || domain === '' || parsed.rules.has(domain)) return parsed
  const others = [...parsed.rules.keys()].map((name) => `'${name}'`).join(', ')
  const found = others === '' ? 'there are no rules' : `the rules are of ${others}`
  const message = `no file has rules of the domain '${domain}', which is required: ${found}`
  return { faults: [{ file: place, line: 1, message }] }
}
