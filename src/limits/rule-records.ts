// Converts a set of rules to small plain records and back, so that another thread can parse the
// files while the main thread builds the rules in slices.
import { findAlgorithm } from './algorithms.ts'
import type { Rule, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import { addNode, emptyLevel, noDescriptors, type MutableRuleLevel } from './rule-tree.ts'

/** A domain or a descriptor. Contains no functions. */
export interface RuleRecord {
  /** Index of the parent record; -1: the record is a domain. */
  readonly parent: number
  readonly domain?: string
  readonly node?: Omit<RuleNode, 'rules' | 'children'>
  readonly rules: readonly PlainRule[]
  /** The hashed keys of its level of children; absent: it has no children. */
  readonly children?: {
    readonly hashedKeys: readonly string[]
    readonly hashedKeysInSubtree: readonly string[]
  }
}

/** A rule without its path, which is that of its node. */
type PlainRule = Omit<Rule, 'algorithm' | 'path'> & { readonly algorithm: string }

/** The records of a set, each after its parent. */
export function* recordsOf(rules: RuleSet): Generator<RuleRecord> {
  let count = 0
  function* childrenOf(level: RuleLevel, parent: number): Generator<RuleRecord> {
    // `exact` includes wildcards; they stay in the order of the file: the first match decides.
    const exact = [...level.exact.values()].flatMap((values) => [...values.values()])
    for (const node of [...exact, ...level.any.values()]) {
      const { rules: limits, children, ...plain } = node
      yield { ...keysOf(children), parent, node: plain, rules: limits.map(plainOf) }
      yield* childrenOf(children, count++)
    }
  }
  for (const [domain, level] of rules) {
    yield { ...keysOf(level), parent: -1, domain, rules: [] }
    yield* childrenOf(level, count++)
  }
}

function keysOf(level: RuleLevel): Pick<RuleRecord, 'children'> {
  if (level === noDescriptors) return {}
  const { hashedKeys, hashedKeysInSubtree } = level
  return {
    children: { hashedKeys: [...hashedKeys], hashedKeysInSubtree: [...hashedKeysInSubtree] },
  }
}

function plainOf(rule: Rule): PlainRule {
  return {
    identity: rule.identity,
    name: rule.name,
    replaces: rule.replaces,
    algorithm: rule.algorithm.name,
    limit: rule.limit,
    unit: rule.unit,
    isShadow: rule.isShadow,
    isQuota: rule.isQuota,
    onStoreError: rule.onStoreError,
    metadata: rule.metadata,
    hasDetailedMetric: rule.hasDetailedMetric,
  }
}

const noNames: readonly string[] = []

/** Builds a set from its records. */
export class RuleBuilder {
  readonly rules: RuleSet
  readonly #domains = new Map<string, RuleLevel>()
  /** By the index of their record; `undefined`: the level has no descriptors. */
  readonly #levels: (MutableRuleLevel | undefined)[] = []
  /** One copy of each string that many records contain. */
  readonly #shared = new Map<string, string>()

  constructor() {
    this.rules = this.#domains
  }

  /** Adds the next record. Throws if the level of its parent does not exist. */
  add({ parent, domain, node, rules, children: keys }: RuleRecord): void {
    const children = keys && levelWith(keys)
    this.#levels.push(children)
    if (domain !== undefined) this.#domains.set(domain, children ?? noDescriptors)
    if (node === undefined) return
    const level = this.#levels[parent]
    if (level === undefined) throw new Error(`Cannot add a rule: level ${parent} does not exist`)
    const isHashed = level.hashedKeys.has(node.key)
    const built: RuleNode = {
      key: this.#share(node.key),
      value: node.value,
      rules: rules.map((rule) => this.#ruleOf(rule, node.path)),
      path: node.path,
      isVariable: node.isVariable,
      isShared: node.isShared,
      hasValueMetric: node.hasValueMetric,
      children: children ?? noDescriptors,
    }
    addNode(level, built, { isHashed })
  }

  #ruleOf(plain: PlainRule, path: string): Rule {
    const algorithm = findAlgorithm(plain.algorithm)
    if (algorithm === undefined)
      throw new Error(`Cannot add a rule: the algorithm ${plain.algorithm} does not exist`)
    return {
      path,
      identity: plain.identity,
      name: plain.name,
      replaces: plain.replaces.length === 0 ? noNames : plain.replaces,
      algorithm,
      limit: plain.limit,
      unit: plain.unit && this.#share(plain.unit),
      isShadow: plain.isShadow,
      isQuota: plain.isQuota,
      onStoreError: this.#share(plain.onStoreError),
      metadata: plain.metadata,
      hasDetailedMetric: plain.hasDetailedMetric,
    }
  }

  #share<T extends string>(text: T): T {
    const shared = this.#shared.get(text)
    if (shared !== undefined) return shared as T
    this.#shared.set(text, text)
    return text
  }
}

function levelWith(keys: NonNullable<RuleRecord['children']>): MutableRuleLevel {
  const level = emptyLevel()
  for (const key of keys.hashedKeys) level.hashedKeys.add(key)
  for (const key of keys.hashedKeysInSubtree) level.hashedKeysInSubtree.add(key)
  return level
}
