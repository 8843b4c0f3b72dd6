// Which values of requests hit each rule most, and which were denied, by minute and in bounded
// memory.
import type { Check } from '../../limits/plan-checks.ts'
import { FrequentKeys } from './frequent-keys.ts'
import { splitValues } from './split-values.ts'

/** The values of a request at one rule, with their hits in the minute. */
interface TopValue {
  /** The path of the rule. */
  readonly rule: string
  /** The name of the rule, if it has one. */
  readonly name?: string
  /** Whether shadow mode admits the denied hits. */
  readonly isShadow: boolean
  /** The values that select the counter, in the order of the descriptor; hashed ones as hashes. */
  readonly values: readonly string[]
  /** Estimate of the hits. */
  readonly hits: number
  readonly denied: number
}

/** One minute. */
export interface TopMinute {
  /** Unix milliseconds. */
  readonly startedMs: number
  /** Unix milliseconds. */
  readonly untilMs: number
  /** For each rule, the values with the most hits and those with the most denied hits. */
  readonly top: readonly TopValue[]
}

/** Maximum number of keys tracked for each of the first FIRST_RULES rules hit in a minute. */
const KEYS_MAX = 1000
/** Maximum number of keys tracked for each later rule of the minute. */
const LATER_KEYS_MAX = 100
const FIRST_RULES = 10
/** Maximum number of rules per minute; the hits of further rules are not counted. */
const RULES_MAX = 110
/** A rule reports at most this many values with the most hits, and as many with the most denied. */
const REPORTED_MAX = 50

/** One rule, and its frequent keys. */
interface RuleKeys extends Pick<TopValue, 'rule' | 'name' | 'isShadow'> {
  readonly keys: FrequentKeys<string, readonly string[]>
}

/** Counts hits by the values of requests. */
export class TopValues {
  readonly #random: () => number
  #byRule = new Map<string, RuleKeys>()
  #startedMs: number
  #last: TopMinute | undefined

  /** `random` returns a number from 0 to less than 1. */
  constructor({ random, nowMs }: { random: () => number; nowMs: number }) {
    this.#random = random
    this.#startedMs = nowMs
  }

  /** Counts the hits of a check. */
  record(
    { rule, metricPath, update, values, requestedHits: hits }: Check,
    admitted: boolean,
  ): void {
    if (hits <= 0) return
    let ofRule = this.#byRule.get(rule.identity)
    if (ofRule === undefined) {
      if (this.#byRule.size >= RULES_MAX) return
      const isFirst = this.#byRule.size < FIRST_RULES
      const keys = new FrequentKeys({
        keysMax: isFirst ? KEYS_MAX : LATER_KEYS_MAX,
        random: this.#random,
        createItem: splitValues,
      })
      // The limit overrides of a domain share an identity; the path of each contains its values.
      const path = metricPath.endsWith('.override') ? metricPath : rule.path
      const name = rule.name === undefined ? {} : { name: rule.name }
      ofRule = { rule: path, ...name, isShadow: update.veto === 'never', keys }
      this.#byRule.set(rule.identity, ofRule)
    }
    ofRule.keys.record(update.key, values, { hits, denied: admitted ? 0 : hits })
  }

  /** The last complete minute and the current one. */
  read(nowMs: number): readonly TopMinute[] {
    const current = this.#current(nowMs)
    return this.#last === undefined ? [current] : [this.#last, current]
  }

  /** Ends the current minute and returns it. */
  endMinute(nowMs: number): TopMinute {
    const completed = this.#current(nowMs)
    this.#last = completed
    this.#byRule = new Map()
    this.#startedMs = nowMs
    return completed
  }

  #current(nowMs: number): TopMinute {
    const top = [...this.#byRule.values()].flatMap(({ keys, ...rule }) =>
      keys
        .top(REPORTED_MAX)
        .map(({ item: values, hits, denied }) => ({ ...rule, values, hits, denied })),
    )
    return { startedMs: this.#startedMs, untilMs: nowMs, top }
  }
}
