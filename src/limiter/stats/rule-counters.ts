// The counters of one rule, with the reference's names and its arithmetic: which of a call's hits
// were within the limit, near it or over it. Decides nothing, and never counts below nothing.

/** What became of a call's hits at one limit. */
export interface Charged {
  /** Hits that were asked for; a look and hits given back count nothing. */
  readonly hits: number
  readonly admitted: boolean
  /** Hits that would still be admitted. */
  readonly remaining: number
  /** Of the hits, how many were beyond the limit. */
  readonly over: number
  /** What a window admits at most, or a bucket's burst. */
  readonly capacity: number
  /** Whether the rule denies nothing. */
  readonly isShadow: boolean
  /** Whether it was denied from this process's memory, without the store. */
  readonly isRemembered: boolean
}

/** The numbers of a rule by their names in statsd. */
export const ruleCounts = [
  'total_hits',
  'over_limit',
  'near_limit',
  'over_limit_with_local_cache',
  'within_limit',
  'shadow_mode',
] as const

/** Name of one of a rule's numbers. */
export type RuleCount = (typeof ruleCounts)[number]

/** What one rule has counted since the process began. */
export class RuleCounters implements Readonly<Record<RuleCount, number>> {
  /** `domain.key_value.key` in the characters that statistics take. */
  readonly path: string
  total_hits = 0
  over_limit = 0
  near_limit = 0
  over_limit_with_local_cache = 0
  within_limit = 0
  shadow_mode = 0
  readonly #nearRatio: number

  /** `nearRatio` is NEAR_LIMIT_RATIO: the part of a limit above which hits are near it. */
  constructor(path: string, nearRatio: number) {
    this.path = path
    this.#nearRatio = Math.fround(nearRatio)
  }

  /** Counts what became of a call's hits. */
  record(charged: Charged): void {
    const { hits } = charged
    if (hits <= 0) return
    this.total_hits += hits
    if (charged.admitted) this.#recordWithin(charged)
    else this.#recordOver(charged)
  }

  /** All hits are within the limit, and those above the threshold are near it. */
  #recordWithin({ hits, remaining, capacity }: Charged): void {
    this.within_limit += hits
    const used = Math.max(0, capacity - remaining)
    this.near_limit += Math.max(0, Math.min(hits, used - this.#nearThreshold(capacity)))
  }

  /** The hits beyond the limit are over it; those that fitted below it may have been near it. */
  #recordOver({ hits, over, capacity, isShadow, isRemembered }: Charged): void {
    // A denied look at hits that another limit has denied reports none beyond: all of them were.
    const beyond = over > 0 && !isRemembered ? Math.min(hits, over) : hits
    this.over_limit += beyond
    const room = Math.max(0, capacity - this.#nearThreshold(capacity))
    this.near_limit += Math.min(hits - beyond, room)
    if (isRemembered) this.over_limit_with_local_cache += hits
    if (isShadow) this.shadow_mode += beyond
  }

  /** In the reference's single precision, so that both count the same hits. */
  #nearThreshold(capacity: number): number {
    return Math.floor(Math.fround(Math.fround(capacity) * this.#nearRatio))
  }
}
