// The tree of rules: built while descriptors are read, and traversed as a whole.
import type { Rule, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import { splitPattern } from './wildcard.ts'

/** A level under construction. */
export interface MutableRuleLevel extends RuleLevel {
  readonly exact: Map<string, Map<string, RuleNode>>
  readonly wildcards: { readonly node: RuleNode; readonly segments: readonly string[] }[]
  readonly any: Map<string, RuleNode>
  readonly hashedKeys: Set<string>
  readonly hashedKeysInSubtree: Set<string>
}

/** A level without descriptors. */
export function emptyLevel(): MutableRuleLevel {
  return {
    exact: new Map(),
    wildcards: [],
    any: new Map(),
    hashedKeys: new Set(),
    hashedKeysInSubtree: new Set(),
  }
}

/** The level below a descriptor without children; shared, because most descriptors have none. */
export const noDescriptors: RuleLevel = emptyLevel()

/**
 * Adds a descriptor. Adds nothing and returns `duplicate` if its key and value exist, or `mixed` if
 * its key exists with the other setting of `hashed`.
 */
export function addNode(
  level: MutableRuleLevel,
  node: RuleNode,
  { isHashed }: { readonly isHashed: boolean },
): 'added' | 'duplicate' | 'mixed' {
  const { key, value } = node
  const values = level.exact.get(key)
  const keyExists = values !== undefined || level.any.has(key)
  if (value === '' ? level.any.has(key) : values?.has(value) === true) return 'duplicate'
  if (keyExists && level.hashedKeys.has(key) !== isHashed) return 'mixed'
  if (isHashed) level.hashedKeys.add(key)
  if (isHashed) level.hashedKeysInSubtree.add(key)
  for (const each of node.children.hashedKeysInSubtree) level.hashedKeysInSubtree.add(each)
  if (value === '') level.any.set(key, node)
  else {
    level.exact.set(key, (values ?? new Map<string, RuleNode>()).set(value, node))
    const segments = splitPattern(value)
    if (segments.length > 1) level.wildcards.push({ node, segments })
  }
  return 'added'
}

/** Every rule of a set; on each level first those of descriptors with a value, then the others. */
export function listRules(rules: RuleSet): readonly Rule[] {
  return [...eachRule(rules)]
}

/** Generates the rules of `listRules` lazily. */
export function* eachRule(rules: RuleSet): Generator<Rule> {
  for (const level of rules.values()) yield* rulesInSubtree(level)
}

/** Whether a level or a level below it has a rule. */
export function hasRules(level: RuleLevel): boolean {
  return rulesInSubtree(level).next().done === false
}

function* rulesInSubtree(level: RuleLevel): Generator<Rule> {
  for (const values of level.exact.values())
    for (const node of values.values()) yield* rulesAt(node)
  for (const node of level.any.values()) yield* rulesAt(node)
}

function* rulesAt({ rules, children }: RuleNode): Generator<Rule> {
  yield* rules
  yield* rulesInSubtree(children)
}

/** The number of descriptors of a set. */
export function countDescriptors(rules: RuleSet): number {
  return [...rules.values()].reduce((sum, level) => sum + countInSubtree(level), 0)
}

function countInSubtree({ exact, any }: RuleLevel): number {
  let count = 0
  for (const values of [...exact.values(), any]) {
    count += values.size
    for (const { children } of values.values())
      if (children !== noDescriptors) count += countInSubtree(children)
  }
  return count
}

/** Encodes a string so that a concatenation of several is unambiguous. */
export function lengthPrefixed(text: string): string {
  return `${text.length}:${text}`
}
