// The parsed rules of an operator, in the tree that matches requests.
import type { Algorithm, Limit } from './algorithm.ts'
import type { Unit } from './descriptor.ts'

/** A YAML value, as allowed in metadata. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A mapping of YAML. */
export type JsonObject = Readonly<{ [key: string]: Json }>

/** Decision while the store is unavailable. */
export const storeErrorModes = ['local', 'allow', 'deny'] as const

/** One of `storeErrorModes`. */
export type StoreErrorMode = (typeof storeErrorModes)[number]

/** One limit, with its settings. */
export interface Rule {
  /** Its path, `domain.key_value.key`, as in /rlconfig, metrics and logs. */
  readonly path: string
  /** Unique for each rule, whatever characters its fields contain; part of each counter key. */
  readonly identity: string
  /** `name:` in the file. */
  readonly name: string | undefined
  /** Names of rules that do not count in a call that this rule matches. */
  readonly replaces: readonly string[]
  readonly algorithm: Algorithm
  /** `undefined` = unlimited. */
  readonly limit: Limit | undefined
  /** The unit of the window, if it is one; `undefined` for a window such as 30 s. */
  readonly unit: Unit | undefined
  /** Shadow mode: counts and reports what it would deny, and denies nothing. */
  readonly isShadow: boolean
  /** Denies a call only if all the rules of this kind are over their limit. */
  readonly isQuota: boolean
  readonly onStoreError: StoreErrorMode
  /** Returned to the caller if the rule admits. */
  readonly metadata: JsonObject | undefined
  /** Whether its metrics name the whole request instead of the rule. */
  readonly hasDetailedMetric: boolean
}

/** One descriptor of a file. */
export interface RuleNode {
  readonly key: string
  /** Empty: any value. May contain `*` for zero or more characters. */
  readonly value: string
  /** The rules of a descriptor whose last entry matches this one: none, one or several limits. */
  readonly rules: readonly Rule[]
  /** `domain.key_value.key`: the name in metrics that contain no value of a request. */
  readonly path: string
  /** Whether each matching value of a request has a separate counter. */
  readonly isVariable: boolean
  /** Whether all values that a wildcard matches share one counter. */
  readonly isShared: boolean
  /** Whether metrics contain the value of the request. */
  readonly hasValueMetric: boolean
  readonly below: RuleLevel
}

/** Descriptors of one depth. */
export interface RuleLevel {
  /** By key, then by exact value. */
  readonly exact: ReadonlyMap<string, ReadonlyMap<string, RuleNode>>
  /** Those with `*`, in the order of the file. */
  readonly wildcards: readonly { readonly node: RuleNode; readonly parts: readonly string[] }[]
  /** Those without a value, by key. */
  readonly any: ReadonlyMap<string, RuleNode>
  /** Keys whose values are replaced by `sha256:<hex>` before they are matched. */
  readonly hashedKeys: ReadonlySet<string>
  /** The hashed keys at this depth and below. */
  readonly hashedKeysBelow: ReadonlySet<string>
}

/** All rules, by domain. */
export type RuleSet = ReadonlyMap<string, RuleLevel>

/** A fault of a file, and its location. */
export interface RuleFault {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly message: string
}
