// Rejects a set without rules for the domain that the proxy sends, because such a set would admit
// every request.
import { hasRules } from './rule-tree.ts'
import type { ParsedRuleFiles } from './parse-rules.ts'

const DOMAINS_LISTED_MAX = 10

/**
 * The parsed set, or a fault in `place` if it has no rules for `domain`, unless that is ''.
 * `path` is the path of the fault, for xDS resources.
 */
export function requireDomain(
  parsed: ParsedRuleFiles,
  given: { readonly domain: string; readonly place: string; readonly path?: string },
): ParsedRuleFiles {
  const { domain, place, path } = given
  if ('faults' in parsed || domain === '') return parsed
  const domains = [...parsed.rules].flatMap(([name, level]) => (hasRules(level) ? [name] : []))
  if (domains.includes(domain)) return parsed
  const others = listed(domains)
  const found = others === '' ? 'there are no rules' : `the domains with rules are ${others}`
  const kind = path === undefined ? 'file' : 'resource'
  const message = `no ${kind} has rules for the required domain '${domain}': ${found}`
  return { faults: [{ file: place, line: 1, ...(path !== undefined && { path }), message }] }
}

function listed(domains: readonly string[]): string {
  const names = domains.slice(0, DOMAINS_LISTED_MAX).map((name) => `'${name}'`)
  const more = domains.length - names.length
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
