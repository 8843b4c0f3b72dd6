// Describes rules and matches for the authors of rules: what a rule allows, and why a descriptor
// matches it. Matches with the same functions as a call, and decides nothing.
import { findNode, matchDescriptor, type MatchRequest, valueToMatch } from './match.ts'
import type { Rule, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import { listRules } from './rule-tree.ts'

const windowUnits = [
  ['d', 86_400_000_000],
  ['h', 3_600_000_000],
  ['m', 60_000_000],
  ['s', 1_000_000],
] as const

/** A duration in the syntax of rules, such as `30s`. */
export function renderWindow(windowUs: number): string {
  const [unit, us] = windowUnits.find(([, each]) => windowUs % each === 0) ?? ['ms', 1000]
  return `${windowUs / us}${unit}`
}

/** A rule in one line, such as `token_bucket, 50 per second, burst 500 (creates-per-client)`. */
function describeRule(rule: Rule): string {
  const suffix = rule.name === undefined ? '' : ` (${rule.name})`
  return `${[...numbersOf(rule), ...notesOf(rule)].join(', ')}${suffix}`
}

function numbersOf({ algorithm, limit, unit }: Rule): readonly string[] {
  if (limit === undefined) return ['unlimited']
  const window = unit?.toLowerCase() ?? renderWindow(limit.windowUs)
  const burst = algorithm.takesBurst ? [`burst ${limit.burst}`] : []
  return [algorithm.name, `${limit.requests} per ${window}`, ...burst]
}

function notesOf({ limit, algorithm, ...rule }: Rule): readonly string[] {
  const isUnusual = limit !== undefined && limit.denyConsumes !== algorithm.denyConsumesByDefault
  return [
    ...(limit?.requests === 0 ? ['denies every request'] : []),
    ...(isUnusual ? [`denied hits ${limit.denyConsumes ? 'count' : 'do not count'}`] : []),
    ...(rule.isShadow ? ['shadow: denies nothing'] : []),
    ...(rule.isQuota ? ['quota: denies only if every quota of the call is exhausted'] : []),
    ...(rule.replaces.length > 0 ? [`replaces ${rule.replaces.join(' and ')}`] : []),
    ...(rule.onStoreError === 'local' ? [] : [`on store error: ${rule.onStoreError}`]),
  ]
}

/** The rules of a set, rendered for people. */
export interface DescribedRules {
  /** A row for each rule: path, algorithm, limit, window, burst, name and notes. */
  readonly rows: readonly (readonly string[])[]
  /** Warnings for the author, each once. */
  readonly warnings: readonly string[]
}

/** Every rule of a set, in the order of `listRules`; the warnings are about Redis Cluster. */
export function describeRules(
  rules: RuleSet,
  { isRedisCluster = false }: { readonly isRedisCluster?: boolean } = {},
): DescribedRules {
  const listed = listRules(rules)
  const needsAtomicity = ({ limit }: Rule) => isRedisCluster && limit?.denyConsumes === false
  const atomicCount = listed.filter(needsAtomicity).length
  const warning =
    'on Redis Cluster only keys with equal hash tags are counted atomically; ' +
    `rules that require it (deny_consumes: false): ${atomicCount} of ${listed.length}`
  return { rows: listed.map(rowOf), warnings: atomicCount === 0 ? [] : [warning] }
}

function rowOf(rule: Rule): readonly string[] {
  const { path, algorithm, limit, name = '-' } = rule
  const notes = notesOf(rule).join('; ')
  if (limit === undefined) return [path, '-', 'unlimited', '-', '-', name, notes]
  const burst = algorithm.takesBurst ? String(limit.burst) : '-'
  const window = rule.unit?.toLowerCase() ?? renderWindow(limit.windowUs)
  return [path, algorithm.name, String(limit.requests), window, burst, name, notes]
}

/** Explains step by step which rule a descriptor matches, with one line for each entry. */
export function explainMatch(request: MatchRequest): readonly string[] {
  const { rules, domain, descriptor } = request
  const match = matchDescriptor(request)
  const top = rules.get(domain)
  if (match === 'unknown-domain' || top === undefined) {
    const names = [...rules.keys()].map((each) => JSON.stringify(each)).join(', ') || 'none'
    return [`no rule: domain ${JSON.stringify(domain)} has no rules; domains with rules: ${names}`]
  }
  if (descriptor.override !== undefined) return linesOf(match)
  const steps: string[] = []
  let reason = 'the descriptor has no entries'
  let level = top
  for (const entry of descriptor.entries) {
    const value = valueToMatch(level.hashedKeys, entry)
    const node = findNode(level, entry.key, value)
    const hashed = value === entry.value ? '' : ', hashed'
    steps.push(`${entry.key}=${value}${hashed}: ${stepOf(level, entry.key, node)}`)
    if (node === undefined) {
      reason = `no descriptor matches ${entry.key}; matching does not backtrack`
      break
    }
    reason = `${node.path} has no rate_limit; a rule applies only to its own depth`
    level = node.children
  }
  return [...steps, ...(match === 'no-rule' ? [`no rule: ${reason}`] : linesOf(match))]
}

function linesOf(match: ReturnType<typeof matchDescriptor>): readonly string[] {
  if (typeof match === 'string') return []
  return match.rules.map((rule) => `hits ${rule.path}: ${describeRule(rule)}`)
}

function stepOf(level: RuleLevel, key: string, node: RuleNode | undefined): string {
  if (node === undefined) return missOf(level, key)
  const sharing = node.isShared ? 'one counter for all that match it' : 'a counter for each value'
  if (node.value === '') return `any value of the key, ${sharing}, at ${node.path}`
  if (node.value.includes('*')) return `wildcard ${node.value}, ${sharing}, at ${node.path}`
  return `exact value, at ${node.path}`
}

function missOf(level: RuleLevel, key: string): string {
  if (level.exact.has(key)) return 'none: no descriptor of this key has the value'
  const keys = [...new Set([...level.exact.keys(), ...level.any.keys()])]
  const list = keys.length === 0 ? 'none' : keys.join(', ')
  return `none: no descriptor on this level has the key; keys: ${list}`
}
