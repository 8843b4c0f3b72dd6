// What an algorithm of limiting is: a pure function of a counter's state, the time and the hits.
// The same decision is taken in Redis by the .lua file of the same name. All times are
// microseconds.

/** A count is never higher, so that every number stays a whole one. */
export const COUNT_MAX = 2 ** 52

/** A limit as an algorithm counts it. */
export interface Limit {
  /** Hits that a window lets through, or that refill within one. */
  readonly requests: number
  readonly windowUs: number
  /** Hits that may come at once; equal to `requests` where the algorithm knows no burst. */
  readonly burst: number
  /**
   * Whether the hits of a call that is denied count. A fixed window counts then also what it denies
   * itself; the other algorithms only what another limit of the call has denied.
   */
  readonly denyConsumes: boolean
}

/** State of one counter: numbers that only its algorithm reads; never longer than `requests`. */
export type CounterState = readonly number[]

/** Hits to be charged to one counter. */
export interface Charge {
  /** What the store holds, or `undefined`: nothing, or it has expired. */
  readonly state: CounterState | undefined
  /** Hits; 0 only looks, a negative number gives hits back. */
  readonly cost: number
  readonly nowUs: number
  readonly limit: Limit
}

/** What an algorithm answers for one counter. */
export interface Decision {
  readonly admitted: boolean
  /** Whole hits that would still be admitted now. */
  readonly remaining: number
  /** Of the hits, how many were beyond the limit; 0 where they are admitted. */
  readonly over: number
  /** Until the whole limit is free again, if no more hits come. */
  readonly resetUs: number
  /** Until these hits would be admitted, if no others come; 0 where they are, Infinity: never. */
  readonly retryAfterUs: number
  /** State to be kept, or `undefined`: it stays as it is. */
  readonly next: CounterState | undefined
  /** How long `next` matters. */
  readonly expiresInUs: number
  /** The store's clock at the decision, if it is another machine's. */
  readonly decidedAtUs?: number
}

/**
 * Whether a time in a state is more than a window ahead: the store's clock was set back from a
 * wrong time. Such a state keeps its hits and takes the current time, or it would deny until then.
 */
export function isTooFarAhead(stateUs: number, { nowUs, limit }: Charge): boolean {
  return stateUs > nowUs + limit.windowUs
}

/** One way of limiting. */
export interface Algorithm {
  /** Its name in rules. */
  readonly name: string
  /** Whether rules may give it a `burst`. */
  readonly takesBurst: boolean
  /** Decides about a charge; never reads a clock. */
  decide(charge: Charge): Decision
}
