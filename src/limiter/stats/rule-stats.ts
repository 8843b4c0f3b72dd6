// What the limiter counts, by rule and as a whole, in bounded memory whatever callers send.
// Counting touches numbers only; who shows them reads them when asked.
import { RuleCounters } from './rule-counters.ts'
import { Timings } from './timings.ts'

/** What the limiter counts as a whole. */
export interface ServiceCounts {
  configLoadSuccess: number
  configLoadError: number
  globalShadowMode: number
  /** Calls that the store did not answer and no rule let pass by itself. */
  redisError: number
  /** Calls that could not be decided because of what they asked. */
  serviceError: number
  totalRequests: number
}

/** Bounds and the threshold. */
export interface RuleStatsOptions {
  /** NEAR_LIMIT_RATIO. */
  readonly nearLimitRatio: number
  /** Rules and values with counters of their own; the rest shares one. 110 if not given. */
  readonly pathsMax?: number
  /** Unknown domains with a counter of their own; the rest shares one. 20 if not given. */
  readonly domainsMax?: number
}

/** Counts what has no counter of its own any more. */
export const OTHER_PATH = '__other__'

/** With six series each, below the 1,000 that a scrape of this process may have. */
const PATHS_MAX = 110
const DOMAINS_MAX = 20
const PATH_CHARACTERS_MAX = 300

/** The counters of a process that limits. */
export class RuleStats {
  readonly service: ServiceCounts = {
    configLoadSuccess: 0,
    configLoadError: 0,
    globalShadowMode: 0,
    redisError: 0,
    serviceError: 0,
    totalRequests: 0,
  }
  /** Of ShouldRateLimit. */
  readonly responseTimes = new Timings()
  readonly #unknownDomains = new Map<string, number>()
  readonly #nearLimitRatio: number
  readonly #pathsMax: number
  readonly #domainsMax: number
  readonly #other: RuleCounters
  /** By the path as callers write it; several may lead to the same counters. */
  readonly #byPath = new Map<string, RuleCounters>()
  readonly #byShownPath = new Map<string, RuleCounters>()
  /** Of these, the rules in force. */
  readonly #declared = new Set<string>()

  constructor(options: RuleStatsOptions) {
    const { nearLimitRatio, pathsMax = PATHS_MAX, domainsMax = DOMAINS_MAX } = options
    this.#nearLimitRatio = nearLimitRatio
    this.#pathsMax = pathsMax
    this.#domainsMax = domainsMax
    this.#other = new RuleCounters(OTHER_PATH, nearLimitRatio)
  }

  /**
   * The counters of a metric path such as `domain.key_value`, the shared ones where there are too
   * many. They may be held as long as the rules of the path are in force.
   */
  countersOf(path: string): RuleCounters {
    return this.#byPath.get(path) ?? this.#find(path)
  }

  /**
   * Keeps room for the rules in force, before the values of requests take it: to be called with
   * the paths of a new set of rules. Counters of rules that have gone are dropped.
   */
  declareRules(paths: Iterable<string>): void {
    const before = new Map(this.#byShownPath)
    const declaredBefore = new Set(this.#declared)
    this.#byShownPath.clear()
    this.#declared.clear()
    for (const path of paths) {
      if (this.#isFull()) break
      const shown = shownPathOf(path)
      const counters = before.get(shown) ?? this.#make(shown)
      this.#byShownPath.set(shown, counters)
      this.#declared.add(shown)
      if (isShort(path)) this.#byPath.set(path, counters)
    }
    for (const [shown, counters] of before) {
      const mayStay = !declaredBefore.has(shown) && !this.#isFull()
      if (mayStay && !this.#declared.has(shown)) this.#byShownPath.set(shown, counters)
    }
    for (const [path, counters] of this.#byPath)
      if (this.#byShownPath.get(counters.path) !== counters) this.#byPath.delete(path)
  }

  /** Counts a call for a domain that no rule names. */
  noteUnknownDomain(domain: string): void {
    const shown = shownPathOf(domain)
    const isKnown = this.#unknownDomains.has(shown)
    const name = isKnown || this.#unknownDomains.size < this.#domainsMax ? shown : OTHER_PATH
    this.#unknownDomains.set(name, (this.#unknownDomains.get(name) ?? 0) + 1)
  }

  /** Counts a call of ShouldRateLimit and its time. */
  noteCall(milliseconds: number): void {
    this.service.totalRequests++
    this.responseTimes.observe(milliseconds)
  }

  /** The counters of all rules, the shared ones once they have counted. */
  listRules(): readonly RuleCounters[] {
    const own = [...this.#byShownPath.values()]
    return this.#other.total_hits === 0 ? own : [...own, this.#other]
  }

  /** Calls for unknown domains. */
  listUnknownDomains(): readonly (readonly [domain: string, calls: number])[] {
    return [...this.#unknownDomains]
  }

  #isFull(): boolean {
    return this.#byShownPath.size >= this.#pathsMax
  }

  #make(shown: string): RuleCounters {
    return new RuleCounters(shown, this.#nearLimitRatio)
  }

  /** The counters of a path that has not been asked for in these words, or is long. */
  #find(path: string): RuleCounters {
    // Under a flood of values nothing more is done than to look the text up.
    if (this.#isFull() && isShort(path)) return this.#byShownPath.get(path) ?? this.#other
    const shown = shownPathOf(path)
    const known = this.#byShownPath.get(shown)
    if (known === undefined && this.#isFull()) return this.#other
    const counters = known ?? this.#make(shown)
    this.#byShownPath.set(shown, counters)
    // A long path is found by way of the shown one each time, so that no caller's text is kept.
    const hasRoom = this.#byPath.size < 2 * this.#pathsMax
    if (isShort(path) && hasRoom) this.#byPath.set(copyOf(path), counters)
    return counters
  }
}

function isShort(path: string): boolean {
  return path.length <= PATH_CHARACTERS_MAX
}

const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g

/** A path without what statsd reads as its own: `:`, `|`, control characters, dots of addresses. */
export function shownPathOf(path: string): string {
  const short = isShort(path) ? path : path.slice(0, PATH_CHARACTERS_MAX)
  const plain = short.replace(/[:|\p{Cc}\u2028\u2029]/gu, '_')
  return copyOf(plain.replace(IPV4, (address) => address.replaceAll('.', '_')))
}

/** The same text without the longer one that it may be a part of. */
function copyOf(text: string): string {
  return Buffer.from(text).toString()
}
