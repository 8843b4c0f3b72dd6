// The statistics of the limiter, by rule and in total. Their memory is bounded, whatever clients
// send. Counting only updates numbers; the exporters read them.
import { AuditCounts } from './audit-counts.ts'
import { RuleCounters } from './rule-counters.ts'
import { Timings } from './timings.ts'
import { TopValues } from './top-values.ts'

/** The bounds and the near-limit threshold. */
export interface RuleStatsOptions {
  /** NEAR_LIMIT_RATIO. */
  readonly nearLimitRatio: number
  /** Maximum number of metric paths with their own counters; the others share one. @default 110 */
  readonly pathsMax?: number
  /** Maximum number of unknown domains with their own counter; the others share one. @default 20 */
  readonly domainsMax?: number
}

/** The path of the counters that all paths beyond the bound share. */
export const OTHER_PATH = '__other__'

/** With six series per path, a scrape of this process stays below 1,000 series. */
const PATHS_MAX = 110
const DOMAINS_MAX = 20
const PATH_CHARACTERS_MAX = 300

/** The statistics of a rate-limit process. */
export class RuleStats {
  /** The total counts. */
  readonly service = {
    configLoadSuccess: 0,
    configLoadError: 0,
    globalShadowMode: 0,
    /** Failed calls to the store, including those rejected while the circuit is open. */
    redisError: 0,
    /** Calls that failed without a decision. */
    serviceError: 0,
    totalRequests: 0,
  }
  /** Response times of ShouldRateLimit. */
  readonly responseTimes = new Timings()
  readonly audit = new AuditCounts()
  readonly top = new TopValues({ random: Math.random, nowMs: Date.now() })
  readonly #unknownDomains = new Map<string, number>()
  readonly #nearLimitRatio: number
  readonly #pathsMax: number
  readonly #domainsMax: number
  readonly #other: RuleCounters
  /** By the unsanitized path; several paths may have the same counters. */
  readonly #byPath = new Map<string, RuleCounters>()
  readonly #bySanitizedPath = new Map<string, RuleCounters>()
  /** The sanitized paths of the active rules. */
  readonly #declared = new Set<string>()

  constructor(options: RuleStatsOptions) {
    const { nearLimitRatio, pathsMax = PATHS_MAX, domainsMax = DOMAINS_MAX } = options
    this.#nearLimitRatio = nearLimitRatio
    this.#pathsMax = pathsMax
    this.#domainsMax = domainsMax
    this.#other = new RuleCounters(OTHER_PATH, nearLimitRatio)
  }

  /**
   * The counters of a metric path such as `domain.key_value`; beyond the bound, the shared ones.
   * Callers may keep them while the rules of the path are active.
   */
  countersOf(path: string): RuleCounters {
    return this.#byPath.get(path) ?? this.#find(path)
  }

  /**
   * Reserves counters for the paths of a new set of rules, before values of requests exhaust the
   * bound. Drops the counters of removed rules.
   */
  declareRules(paths: Iterable<string>): void {
    const before = new Map(this.#bySanitizedPath)
    const declaredBefore = new Set(this.#declared)
    this.#bySanitizedPath.clear()
    this.#declared.clear()
    for (const path of paths) {
      if (this.#isFull()) break
      const sanitized = sanitizedPathOf(path)
      const counters = before.get(sanitized) ?? this.#createCounters(sanitized)
      this.#bySanitizedPath.set(sanitized, counters)
      this.#declared.add(sanitized)
      if (isShort(path)) this.#byPath.set(path, counters)
    }
    for (const [sanitized, counters] of before) {
      const mayStay = !declaredBefore.has(sanitized) && !this.#isFull()
      if (mayStay && !this.#declared.has(sanitized)) this.#bySanitizedPath.set(sanitized, counters)
    }
    for (const [path, counters] of this.#byPath)
      if (this.#bySanitizedPath.get(counters.path) !== counters) this.#byPath.delete(path)
  }

  /** Counts a call for a domain without rules. */
  countUnknownDomain(domain: string): void {
    const sanitized = sanitizedPathOf(domain)
    const hasCounter = this.#unknownDomains.has(sanitized)
    const name = hasCounter || this.#unknownDomains.size < this.#domainsMax ? sanitized : OTHER_PATH
    this.#unknownDomains.set(name, (this.#unknownDomains.get(name) ?? 0) + 1)
  }

  /** Counts a call of ShouldRateLimit and its response time. */
  countCall(milliseconds: number): void {
    this.service.totalRequests++
    this.responseTimes.observe(milliseconds)
  }

  /** The counters of all paths, with the shared ones if they are in use. */
  listCounters(): readonly RuleCounters[] {
    const own = [...this.#bySanitizedPath.values()]
    return this.#other.total_hits === 0 ? own : [...own, this.#other]
  }

  /** The number of calls for each unknown domain. */
  listUnknownDomains(): readonly (readonly [domain: string, calls: number])[] {
    return [...this.#unknownDomains]
  }

  #isFull(): boolean {
    return this.#bySanitizedPath.size >= this.#pathsMax
  }

  #createCounters(sanitized: string): RuleCounters {
    return new RuleCounters(sanitized, this.#nearLimitRatio)
  }

  /** Finds or creates the counters of a path that is not in `#byPath`. */
  #find(path: string): RuleCounters {
    // At the bound, a short path costs only this lookup, so that a flood of values stays cheap.
    if (this.#isFull() && isShort(path)) return this.#bySanitizedPath.get(path) ?? this.#other
    const sanitized = sanitizedPathOf(path)
    const existing = this.#bySanitizedPath.get(sanitized)
    if (existing === undefined && this.#isFull()) return this.#other
    const counters = existing ?? this.#createCounters(sanitized)
    this.#bySanitizedPath.set(sanitized, counters)
    // A long path is sanitized at each lookup, because `#byPath` stores no long strings.
    const isBelowMax = this.#byPath.size < 2 * this.#pathsMax
    if (isShort(path) && isBelowMax) this.#byPath.set(copyOf(path), counters)
    return counters
  }
}

function isShort(path: string): boolean {
  return path.length <= PATH_CHARACTERS_MAX
}

const IPV4 = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g

/** Replaces characters with a meaning in statsd: `:`, `|`, controls, and dots of IPv4 addresses. */
export function sanitizedPathOf(path: string): string {
  const short = isShort(path) ? path : path.slice(0, PATH_CHARACTERS_MAX)
  const plain = short.replace(/[:|\p{Cc}\u2028\u2029]/gu, '_')
  return copyOf(plain.replace(IPV4, (address) => address.replaceAll('.', '_')))
}

/** Copies a string, because a slice would retain the longer string that contains it. */
function copyOf(value: string): string {
  return Buffer.from(value).toString()
}
