// A rate-limit algorithm: a pure function of a counter's state, the time and the hits.
// In Redis the .lua file of the same name makes the same decision. All times are microseconds.

/** Maximum of a count, so that every number stays an exact integer. */
export const COUNT_MAX = 2 ** 52

/** A limit as an algorithm counts it. */
export interface Limit {
  /** Hits that are admitted, or refilled, per window. */
  readonly requests: number
  readonly windowUs: number
  /** Hits admitted at once; equal to `requests` if the algorithm has no burst. */
  readonly burst: number
  /**
   * Whether the hits of a denied call count. If so, a fixed window also counts hits that it denies
   * itself; the other algorithms only hits that another limit of the call denies.
   */
  readonly denyConsumes: boolean
}

/** State of one counter: numbers that only its algorithm reads; never longer than `requests`. */
export type CounterState = readonly number[]

/** Input of a decision: the counter's state and the hits to count. */
export interface DecisionInput {
  /** The stored state; `undefined`: none, or it has expired. */
  readonly state: CounterState | undefined
  /** Hits; 0 only reads, a negative number refunds hits. */
  readonly cost: number
  readonly nowUs: number
  readonly limit: Limit
}

/** Decision for one counter. */
export interface Decision {
  readonly admitted: boolean
  /** Whole hits that would still be admitted now. */
  readonly remaining: number
  /** Of the hits, how many were over the limit; 0 if they are admitted. */
  readonly over: number
  /** Until the whole limit is available, if no more hits arrive. */
  readonly resetUs: number
  /** Until these hits are admitted if no others arrive; 0: they are now, Infinity: never. */
  readonly retryAfterUs: number
  /** State to store, or `undefined`: unchanged. */
  readonly next: CounterState | undefined
  /** Lifetime of `next`. */
  readonly expiresInUs: number
  /** The store's clock at the decision, if it is another machine's. */
  readonly decidedAtUs?: number
}

/**
 * Whether a time in a state is more than a window ahead: the store's clock was set back from a
 * wrong time. Such a state keeps its hits and takes the current time, or it would deny until then.
 */
export function isTooFarAhead(stateUs: number, { nowUs, limit }: DecisionInput): boolean {
  return stateUs > nowUs + limit.windowUs
}

/** A rate-limit algorithm. */
export interface Algorithm {
  /** Its name in rules. */
  readonly name: string
  /** Whether rules may set its `burst`. */
  readonly takesBurst: boolean
  /** Decides whether the hits are admitted; never reads a clock. */
  decide(input: DecisionInput): Decision
}
