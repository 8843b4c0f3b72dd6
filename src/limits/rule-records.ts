// Converts a set of rules to small plain records and back, so that another thread can parse the
// files while the main thread builds the rules in slices.
import { algorithms } from './algorithms.ts'
import type { Rule, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import { addNode, emptyLevel, type OpenLevel } from './rule-tree.ts'

/** A domain or a descriptor, with the level below it. Contains no functions. */
export interface RuleRecord {
  /** Index of the record above this one; -1: the record is a domain. */
  readonly parent: number
  /** `hashedKeys` of the level itself. */
  readonly hashedKeys: readonly string[]
  readonly hashedKeysBelow: readonly string[]
  readonly domain?: string
  readonly node?: Omit<RuleNode, 'rules' | 'below'>
  readonly rules: readonly PlainRule[]
}

type PlainRule = Omit<Rule, 'algorithm'> & { readonly algorithm: string }

/** The records of a set, each after its parent. */
export function* recordsOf(rules: RuleSet): Generator<RuleRecord> {
  let count = 0
  function* below(level: RuleLevel, own: number): Generator<RuleRecord> {
    // In the order of the file, because the first matching wildcard decides.
    const exact = [...level.exact.values()].flatMap((values) => [...values.values()])
    for (const node of [...exact, ...level.any.values()]) {
      const { rules: limits, below: inner, ...plain } = node
      yield { ...keysOf(inner), parent: own, node: plain, rules: limits.map(plainOf) }
      yield* below(inner, count++)
    }
  }
  for (const [domain, level] of rules) {
    yield { ...keysOf(level), parent: -1, domain, rules: [] }
    yield* below(level, count++)
  }
}

function keysOf({ hashedKeys, hashedKeysBelow }: RuleLevel) {
  return { hashedKeys: [...hashedKeys], hashedKeysBelow: [...hashedKeysBelow] }
}

function plainOf(rule: Rule): PlainRule {
  return { ...rule, algorithm: rule.algorithm.name }
}

const algorithmOf = new Map(algorithms.map((algorithm) => [algorithm.name, algorithm]))

/** Builds a set from its records. */
export class RuleBuilder {
  readonly rules: RuleSet
  readonly #domains = new Map<string, OpenLevel>()
  readonly #levels: OpenLevel[] = []

  constructor() {
    this.rules = this.#domains
  }

  /** Adds the next record. Throws if its parent does not exist. */
  add({ parent, domain, node, rules, hashedKeys, hashedKeysBelow }: RuleRecord): void {
    const below = emptyLevel()
    for (const key of hashedKeys) below.hashedKeys.add(key)
    for (const key of hashedKeysBelow) below.hashedKeysBelow.add(key)
    this.#levels.push(below)
    if (domain !== undefined) this.#domains.set(domain, below)
    if (node === undefined) return
    const level = this.#levels[parent]
    if (level === undefined) throw new Error(`Cannot add a rule: level ${parent} does not exist`)
    const isHashed = level.hashedKeys.has(node.key)
    addNode(level, { ...node, rules: rules.map(ruleOf), below }, { isHashed })
  }
}

function ruleOf({ algorithm: name, ...rule }: PlainRule): Rule {
  const algorithm = algorithmOf.get(name)
  if (algorithm === undefined)
    throw new Error(`Cannot add a rule: the algorithm ${name} does not exist`)
  return { ...rule, algorithm }
}
