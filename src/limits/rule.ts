// The parsed rules, as the tree in which requests are matched.
import type { Algorithm, Limit } from './algorithm.ts'
import type { Unit } from './descriptor.ts'

/** A JSON value, as allowed in metadata. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A JSON object. */
export type JsonObject = Readonly<{ [key: string]: Json }>

/**
 * How a rule decides while the store is slow or unavailable: `local` counts in this process,
 * `allow` admits every call and `deny` denies every call.
 */
export const storeErrorModes = ['local', 'allow', 'deny'] as const

/** One of `storeErrorModes`. */
export type StoreErrorMode = (typeof storeErrorModes)[number]

/** One limit, with its settings. */
export interface Rule {
  /** Its path, `domain.key_value.key`, as in /rlconfig, metrics and logs. */
  readonly path: string
  /** Unique among the rules of a set; hashed into the key of each counter of the rule. */
  readonly identity: string
  /** `name:` in the file. */
  readonly name: string | undefined
  /** Names of the rules that are skipped in a call that also matches this rule. */
  readonly replaces: readonly string[]
  readonly algorithm: Algorithm
  /** `undefined` = unlimited. */
  readonly limit: Limit | undefined
  /** The unit of the window; `undefined` if the window is not exactly one unit, such as 30 s. */
  readonly unit: Unit | undefined
  /** Shadow mode: counts and reports what it would deny, and denies nothing. */
  readonly isShadow: boolean
  /** Quota: a call is denied only if all its quotas are exhausted. */
  readonly isQuota: boolean
  readonly onStoreError: StoreErrorMode
  /** Returned to the proxy if the rule's descriptor is admitted. */
  readonly metadata: JsonObject | undefined
  /** Whether its metrics contain all values of the request. */
  readonly hasDetailedMetric: boolean
}

/** One descriptor of a file. */
export interface RuleNode {
  readonly key: string
  /** Empty: any value. May contain `*` for zero or more characters. */
  readonly value: string
  /** The rules of a request whose last entry matches this node; usually one or none. */
  readonly rules: readonly Rule[]
  /** `domain.key_value.key`: the path in metrics without values of requests. */
  readonly path: string
  /** Whether each matching value of a request has a separate counter. */
  readonly isVariable: boolean
  /** Whether all values that a wildcard matches share one counter. */
  readonly isShared: boolean
  /** Whether metrics contain the value of the request. */
  readonly hasValueMetric: boolean
  /** The descriptors nested in this one. */
  readonly children: RuleLevel
}

/** Descriptors of one depth. */
export interface RuleLevel {
  /** By key, then by value; includes values with `*`, which match only the same string here. */
  readonly exact: ReadonlyMap<string, ReadonlyMap<string, RuleNode>>
  /** Descriptors with `*`, in the order of the file. */
  readonly wildcards: readonly { readonly node: RuleNode; readonly segments: readonly string[] }[]
  /** Descriptors without a value, by key. */
  readonly any: ReadonlyMap<string, RuleNode>
  /** Keys whose values are replaced with `sha256:<hex>` before they are matched. */
  readonly hashedKeys: ReadonlySet<string>
  /** The hashed keys of this level and of all levels under it. */
  readonly hashedKeysInSubtree: ReadonlySet<string>
}

/** All rules, by domain. */
export type RuleSet = ReadonlyMap<string, RuleLevel>

/** A fault in a file or an xDS resource, and its location. */
export interface RuleFault {
  /** The file or the resource. */
  readonly file: string
  /** From 1; in a resource, the number of a node. */
  readonly line: number
  /**
   * The path of the node in a resource, empty for the resource itself; or the path of a rule.
   * `undefined`: messages show `line` instead.
   */
  readonly path?: string
  readonly message: string
  /** The number of faults that are not listed, if this one stands for them. */
  readonly omittedCount?: number
}
