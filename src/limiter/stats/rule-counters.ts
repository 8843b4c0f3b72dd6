// The counters of one rule, with the names and the arithmetic of envoyproxy/ratelimit: the hits of
// calls that were within the limit, near it or beyond it. No counter ever decreases.

/** The hits of a call at one limit and their decision. */
export interface CountedHits {
  /** Requested hits; peeks and refunds are not counted. */
  readonly hits: number
  readonly admitted: boolean
  /** Hits that would still be admitted. */
  readonly remaining: number
  /** Number of hits beyond the limit. */
  readonly over: number
  /** Maximum hits per window, or the burst of a token bucket. */
  readonly capacity: number
  /** Whether the rule is in shadow mode. */
  readonly isShadow: boolean
  /** Whether the deny cache denied the hits, without the store. */
  readonly isFromDenyCache: boolean
}

/** The names of a rule's counters, as in statsd. */
export const counterNames = [
  'total_hits',
  'over_limit',
  'near_limit',
  'over_limit_with_local_cache',
  'within_limit',
  'shadow_mode',
] as const

/** Name of one of a rule's counters. */
export type CounterName = (typeof counterNames)[number]

/** The counters of one rule since the process started. */
export class RuleCounters implements Readonly<Record<CounterName, number>> {
  /** `domain.key_value.key`, sanitized for statistics. */
  readonly path: string
  total_hits = 0
  over_limit = 0
  near_limit = 0
  over_limit_with_local_cache = 0
  within_limit = 0
  shadow_mode = 0
  readonly #nearRatio: number

  /** `nearRatio` is NEAR_LIMIT_RATIO: the fraction of a limit above which hits are near it. */
  constructor(path: string, nearRatio: number) {
    this.path = path
    this.#nearRatio = Math.fround(nearRatio)
  }

  /** Counts the hits of a call. Returns those that only shadow mode admits. */
  record(counted: CountedHits): number {
    const { hits } = counted
    if (hits <= 0) return 0
    const before = this.shadow_mode
    this.total_hits += hits
    if (counted.admitted) this.#recordWithin(counted)
    else this.#recordOver(counted)
    return this.shadow_mode - before
  }

  /** All hits are within the limit, and those above the threshold are near it. */
  #recordWithin({ hits, remaining, capacity }: CountedHits): void {
    this.within_limit += hits
    const used = Math.max(0, capacity - remaining)
    this.near_limit += Math.max(0, Math.min(hits, used - this.#nearThreshold(capacity)))
  }

  /** Hits beyond the limit count as over it; the others may be near it. */
  #recordOver({ hits, over, capacity, isShadow, isFromDenyCache }: CountedHits): void {
    // `over` is 0 if the update had 0 hits, because another limit denied the call: count all hits.
    const beyond = over > 0 && !isFromDenyCache ? Math.min(hits, over) : hits
    this.over_limit += beyond
    const nearMax = Math.max(0, capacity - this.#nearThreshold(capacity))
    this.near_limit += Math.min(hits - beyond, nearMax)
    if (isFromDenyCache) this.over_limit_with_local_cache += hits
    if (isShadow) this.shadow_mode += beyond
  }

  /** In single precision, like envoyproxy/ratelimit, so that both count the same hits. */
  #nearThreshold(capacity: number): number {
    return Math.floor(Math.fround(Math.fround(capacity) * this.#nearRatio))
  }
}
