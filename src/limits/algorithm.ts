// A rate-limit algorithm: a pure function of a counter's state, the time and the hits. In Redis the
// .lua file of the same name returns the same decision. All times are in microseconds.

/** Maximum of a count, so that every number stays an exact integer. */
export const COUNT_MAX = 2 ** 52

/** Maximum hits of a limit, from Envoy's API. */
export const REQUESTS_MAX = 2 ** 32 - 1

/** The parameters of an algorithm for one rule. */
export interface Limit {
  /** Hits admitted per window; for a bucket, hits refilled per window. */
  readonly requests: number
  readonly windowUs: number
  /** Hits admitted in one burst; equal to `requests` if the algorithm has no burst. */
  readonly burst: number
  /**
   * Whether hits count if another limit denies their call. If so, a fixed window also counts the
   * hits that it denies itself; the other algorithms never count those.
   */
  readonly denyConsumes: boolean
}

/**
 * State of one counter: numbers that only its algorithm reads. Redis stores two or three whole
 * numbers, unless the algorithm's script has its own `read` and `write`.
 */
export type CounterState = readonly number[]

/** Input of a decision: the counter's state and the hits to count. */
export interface DecisionInput {
  /** The stored state; `undefined`: it does not exist or has expired. */
  readonly state: CounterState | undefined
  /** Hits; 0 only reads the counter, a negative number refunds hits. */
  readonly hits: number
  readonly nowUs: number
  readonly limit: Limit
}

/** Decision for one counter. */
export interface Decision {
  readonly admitted: boolean
  /** Whole hits that would still be admitted. */
  readonly remaining: number
  /** The hits to report as over the limit; 0 if they are admitted. */
  readonly over: number
  /** Time by which the whole limit is available, without further hits. */
  readonly resetUs: number
  /** Time until these hits are admitted, without further hits; 0: now, Infinity: never. */
  readonly retryAfterUs: number
  /** The state to store; `undefined`: unchanged. */
  readonly next: CounterState | undefined
  /** Lifetime of `next`. */
  readonly expiresInUs: number
  /** The store's clock at the decision, if the store has its own clock. */
  readonly decidedAtUs?: number
}

/**
 * Whether a stored time is more than one window ahead of the clock, which happens if the clock was
 * set back. Algorithms then keep the hits but replace the stored time with the current one, because
 * otherwise the limit would deny calls until the clock reaches the stored time.
 */
export function isTooFarAhead(stateUs: number, { nowUs, limit }: DecisionInput): boolean {
  return stateUs > nowUs + limit.windowUs
}

/** A rate-limit algorithm. Contains all code that is specific to it, except its Redis script. */
export interface Algorithm {
  /** Its name in rules; in kebab case, the name of its script. */
  readonly name: string
  /** Whether rules may set its `burst`. */
  readonly takesBurst: boolean
  /** Default of `deny_consumes` in its rules. */
  readonly denyConsumesByDefault: boolean
  /** Maximum hits of a limit; at most REQUESTS_MAX. */
  readonly maxRequests: number
  /** Why the algorithm does not support this limit, as `cannot …`; `undefined` if it does. */
  checkLimit(limit: Limit): string | undefined
  /** The numbers that its script reads as `limit[1]`, `limit[2]`…; cached for each limit. */
  scriptNumbers(limit: Limit): readonly number[]
  /** Whether used hits drain at a constant rate; otherwise they expire with their window. */
  readonly drains: boolean
  /** Time until a refund could affect a later window; Infinity if windows have no start. */
  refundableUs(decision: Decision, limit: Limit): number
  /**
   * A lower bound of the hits that remain `elapsedUs` after this decision if no hit is counted in
   * between; computed from the decision alone, without the state.
   */
  remainingAfter(
    decision: Pick<Decision, 'remaining' | 'resetUs'>,
    elapsedUs: number,
    limit: Limit,
  ): number
  /** Decides whether the hits are admitted; never reads a clock. */
  decide(input: DecisionInput): Decision
}
