// Finds the rules that a descriptor matches, and the counter of each rule. Runs in each call; pure.
import { hash } from 'node:crypto'
import { type Descriptor, type Entry, unitSeconds } from './descriptor.ts'
import { defaultAlgorithm } from './algorithms.ts'
import type { Rule, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import { lengthPrefixed } from './rule-tree.ts'
import { matchesSegments } from './wildcard.ts'

/** The rules that a descriptor matches. */
export interface Match {
  /** At least one. */
  readonly rules: readonly Rule[]
  /** The values of the request that, together with a rule, identify its counter. */
  readonly values: string
  /** The path of the rule in metrics. */
  readonly metricPath: string
}

/** A descriptor to match. */
export interface MatchRequest {
  readonly rules: RuleSet
  readonly domain: string
  readonly descriptor: Descriptor
  /** Whether denied hits count in a limit override of the caller. @default true */
  readonly denyConsumes?: boolean
}

/**
 * Finds the rules of a descriptor. Only the rules at the depth of its last entry apply, not those
 * of the levels above. Returns the reason if no rule applies.
 */
export function matchDescriptor(request: MatchRequest): Match | 'unknown-domain' | 'no-rule' {
  const { rules, domain, descriptor } = request
  const top = rules.get(domain)
  if (top === undefined) return 'unknown-domain'
  if (descriptor.override !== undefined) return matchOverride(request, top)
  let level = top
  let node: RuleNode | undefined
  let values = ''
  let hasValueMetric = false
  for (const entry of descriptor.entries) {
    const value = valueToMatch(level.hashedKeys, entry)
    node = findNode(level, entry.key, value)
    if (node === undefined) return 'no-rule'
    if (node.isVariable) values += lengthPrefixed(value)
    if (node.hasValueMetric) hasValueMetric = true
    level = node.children
  }
  const rule = node?.rules[0]
  if (node === undefined || rule === undefined) return 'no-rule'
  const isDetailed = rule.hasDetailedMetric
  const metricPath =
    isDetailed || hasValueMetric ? metricPathOf(request, top, isDetailed) : node.path
  return { rules: node.rules, values, metricPath }
}

/** The match of an entry: its exact value, else the first wildcard in the file, else any value. */
export function findNode(level: RuleLevel, key: string, value: string): RuleNode | undefined {
  const exact = level.exact.get(key)?.get(value)
  if (exact !== undefined) return exact
  for (const { node, segments } of level.wildcards) {
    if (node.key === key && matchesSegments(segments, value)) return node
  }
  return level.any.get(key)
}

/** The value to match; for a hashed key, `sha256:` and the hash of the value. */
export function valueToMatch(hashedKeys: ReadonlySet<string>, { key, value }: Entry): string {
  return hashedKeys.size > 0 && hashedKeys.has(key) ? `sha256:${hash('sha256', value)}` : value
}

/** The key of one counter, unique for rule, window and values: 132 bits of a SHA-256 hash. */
export function counterKey(rule: Rule, values: string): string {
  return hash('sha256', lengthPrefixed(rule.identity) + values, 'base64url').slice(0, 22)
}

/** A path with values of the request: those of descriptors with `value_to_metric`, or all. */
function metricPathOf(request: MatchRequest, top: RuleLevel, isDetailed: boolean): string {
  let path = request.domain
  let level = top
  for (const entry of request.descriptor.entries) {
    const value = valueToMatch(level.hashedKeys, entry)
    const node = findNode(level, entry.key, value)
    if (node === undefined) return path
    const shown = node.isShared || !(isDetailed || node.hasValueMetric) ? node.value : value
    path += shown === '' ? `.${entry.key}` : `.${entry.key}_${shown}`
    level = node.children
  }
  return path
}

/** The rule of a limit override from the caller. The overrides of a domain share their metrics. */
function matchOverride(request: MatchRequest, top: RuleLevel): Match {
  const { domain, descriptor, denyConsumes = true } = request
  const { requestsPerUnit: requests = 0, unit = 'SECOND' } = descriptor.override ?? {}
  const windowUs = unitSeconds[unit] * 1_000_000
  let path = domain
  let values = ''
  for (const entry of descriptor.entries) {
    const value = valueToMatch(top.hashedKeysInSubtree, entry)
    path += value === '' ? `.${entry.key}` : `.${entry.key}_${value}`
    values += lengthPrefixed(entry.key) + lengthPrefixed(value)
  }
  const rule: Rule = {
    path,
    identity: lengthPrefixed(domain) + lengthPrefixed(String(windowUs)),
    name: undefined,
    replaces: [],
    algorithm: defaultAlgorithm,
    limit: { requests, windowUs, burst: requests, denyConsumes },
    unit,
    isShadow: false,
    isQuota: false,
    onStoreError: 'local',
    metadata: undefined,
    hasDetailedMetric: false,
  }
  return { rules: [rule], values, metricPath: `${domain}.override` }
}
