// The parsed rules, as the tree in which requests are matched.
import type { Algorithm, Limit } from './algorithm.ts'
import type { Unit } from './descriptor.ts'

/** A YAML value, as allowed in metadata. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A mapping of YAML. */
export type JsonObject = Readonly<{ [key: string]: Json }>

/** The decisions of a rule while the store is unavailable. */
export const storeErrorModes = ['local', 'allow', 'deny'] as const

/** One of `storeErrorModes`. */
export type StoreErrorMode = (typeof storeErrorModes)[number]

/** One limit, with its settings. */
export interface Rule {
  /** Its path, `domain.key_value.key`, as in /rlconfig, metrics and logs. */
  readonly path: string
  /** Unique for each rule, for any characters in its fields; contained in each counter key. */
  readonly identity: string
  /** `name:` in the file. */
  readonly name: string | undefined
  /** Names of rules that do not count in a call that this rule matches. */
  readonly replaces: readonly string[]
  readonly algorithm: Algorithm
  /** `undefined` = unlimited. */
  readonly limit: Limit | undefined
  /** The unit of the window; `undefined` for a window such as 30 s. */
  readonly unit: Unit | undefined
  /** Shadow mode: counts and reports what it would deny, and denies nothing. */
  readonly isShadow: boolean
  /** Quota: a call is denied only if all its quotas are exhausted. */
  readonly isQuota: boolean
  readonly onStoreError: StoreErrorMode
  /** Returned to the client if the rule admits the call. */
  readonly metadata: JsonObject | undefined
  /** Whether its metrics contain all values of the request. */
  readonly hasDetailedMetric: boolean
}

/** One descriptor of a file. */
export interface RuleNode {
  readonly key: string
  /** Empty: any value. May contain `*` for zero or more characters. */
  readonly value: string
  /** The rules of a request whose last entry matches this descriptor. */
  readonly rules: readonly Rule[]
  /** `domain.key_value.key`: the path in metrics without values of requests. */
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
  /** Descriptors with `*`, in the order of the file. */
  readonly wildcards: readonly { readonly node: RuleNode; readonly segments: readonly string[] }[]
  /** Descriptors without a value, by key. */
  readonly any: ReadonlyMap<string, RuleNode>
  /** Keys whose values are replaced by `sha256:<hex>` before they are matched. */
  readonly hashedKeys: ReadonlySet<string>
  /** The hashed keys at this depth and below. */
  readonly hashedKeysBelow: ReadonlySet<string>
}

/** All rules, by domain. */
export type RuleSet = ReadonlyMap<string, RuleLevel>

/** A fault in a file and its location. */
export interface RuleFault {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly message: string
}
