// What an operator writes, once it has been parsed: rules in the tree by which they are found.
import type { Algorithm, Limit } from './algorithm.ts'
import type { Unit } from './descriptor.ts'

/** A value of YAML, as metadata may hold it. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A mapping of YAML. */
export type JsonObject = Readonly<{ [key: string]: Json }>

/** What happens where the store does not answer. */
export const storeErrorModes = ['local', 'allow', 'deny'] as const

/** One of `storeErrorModes`. */
export type StoreErrorMode = (typeof storeErrorModes)[number]

/** One limit that an operator wrote, with all that belongs to it. */
export interface Rule {
  /** Where it stands: `domain.key_value.key`, as /rlconfig, metrics and logs name it. */
  readonly path: string
  /** What no other counter's rule has, whatever characters the file holds: part of each key. */
  readonly identity: string
  /** `name:` in the file. */
  readonly name: string | undefined
  /** Names of rules that do not count in a call to which this one belongs. */
  readonly replaces: readonly string[]
  readonly algorithm: Algorithm
  /** `undefined` = unlimited. */
  readonly limit: Limit | undefined
  /** The unit of the window, if it is one; a window such as 30 s is none. */
  readonly unit: Unit | undefined
  /** Reports what it would deny, and denies nothing. */
  readonly isShadow: boolean
  /** Denies a call only if all the rules of this kind are over their limit. */
  readonly isQuota: boolean
  readonly onStoreError: StoreErrorMode
  /** Returned to the caller while the rule admits. */
  readonly metadata: JsonObject | undefined
  /** Whether its metrics name the whole request instead of the rule. */
  readonly hasDetailedMetric: boolean
}

/** One descriptor of a file. */
export interface RuleNode {
  readonly key: string
  /** Empty: any value. May hold `*` for zero or more characters. */
  readonly value: string
  /** The rules of a call whose descriptor ends here: none, one or several limits. */
  readonly rules: readonly Rule[]
  /** `domain.key_value.key`: what its metrics are called where they name no value of a request. */
  readonly path: string
  /** Whether each value of a request that leads here has a counter of its own. */
  readonly isVariable: boolean
  /** Whether all values that a wildcard matches share one counter. */
  readonly isShared: boolean
  /** Whether metrics name the value of the request. */
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
  /** Those of this depth and of all below it. */
  readonly hashedKeysBelow: ReadonlySet<string>
}

/** All rules, by domain. */
export type RuleSet = ReadonlyMap<string, RuleLevel>

/** What is wrong in a file, and where. */
export interface RuleFault {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly message: string
}
