// Token bucket: admits a burst, then hits at the refill rate. Refills continuously up to the burst.
import {
  type Algorithm,
  COUNT_MAX,
  type Decision,
  type DecisionInput,
  isTooFarAhead,
  type Limit,
  REQUESTS_MAX,
} from './algorithm.ts'

/** State: [time of the write, level at that time, `hitUnits`]; see `decideBucket`. */
export const tokenBucket: Algorithm = {
  name: 'token_bucket',
  takesBurst: true,
  denyConsumesByDefault: false,
  maxRequests: REQUESTS_MAX,
  checkLimit: checkBucket,
  scriptNumbers: bucketNumbers,
  drains: true,
  refundableUs: () => Infinity,
  remainingAfter({ remaining, resetUs }, elapsedUs, { requests, burst, windowUs }) {
    const usedHits = (Math.max(0, resetUs - elapsedUs) * requests) / windowUs
    return requests === 0 ? 0 : Math.max(remaining, burst - Math.ceil(usedHits))
  },
  decide: (input) => decideBucket(input, { burst: input.limit.burst }),
}

/** Checks that `burst` hits are an exact number of the units that `bucketUnitsOf` returns. */
export function checkBucket(limit: Limit): string | undefined {
  const { requests, burst } = limit
  if (requests === 0 || burst * bucketUnitsOf(limit).hitUnits <= COUNT_MAX) return undefined
  const remedy = 'choose a rounder number, a smaller burst or a shorter window'
  return `cannot count ${requests} per window exactly: ${remedy}`
}

/** `hitUnits` and `drainUnits` for the script. */
export function bucketNumbers(limit: Limit): readonly number[] {
  const { hitUnits, drainUnits } = bucketUnitsOf(limit)
  return [hitUnits, drainUnits]
}

/**
 * The state stores the used tokens as a level that hits raise and time drains: a hit adds
 * `hitUnits`, a microsecond drains `drainUnits`. Whole numbers, so that no rounding errors add up.
 */
export function decideBucket(
  input: DecisionInput,
  /** `burst`: the capacity in hits for this call; `singleHits`: the one for `remaining`. */
  { burst, singleHits = burst }: { burst: number; singleHits?: number },
): Decision {
  const { hits, nowUs, limit } = input
  if (limit.requests === 0) return zeroLimitDecision(hits)
  const { hitUnits, drainUnits } = bucketUnitsOf(limit)
  const { stateTimeUs, usedUnits, isClamped } = lastWrite(input, hitUnits)
  const atUs = Math.max(nowUs, stateTimeUs) // setting the clock back drains nothing
  const drained = Math.max(0, usedUnits - (atUs - stateTimeUs) * drainUnits)
  const level = Math.min(limit.burst * hitUnits, drained) // less if the limit was lowered
  const full = burst * hitUnits
  const requested = level + Math.max(1, hits) * hitUnits
  const admitted = hits < 0 || requested <= full
  const after = admitted ? Math.max(0, level + hits * hitUnits) : level
  // If the clock was set back, nothing drains until it reaches the time of the state.
  const pausedUs = atUs - nowUs
  const resetUs = after === 0 ? 0 : pausedUs + Math.ceil(after / drainUnits)
  const fitsInUs = pausedUs + Math.ceil((requested - full) / drainUnits)
  return {
    admitted,
    remaining: Math.max(0, Math.floor((singleHits * hitUnits - after) / hitUnits)),
    over: admitted ? 0 : hits,
    resetUs,
    retryAfterUs: admitted ? 0 : hits > burst ? Infinity : fitsInUs,
    next: after === drained && !isClamped ? undefined : [atUs, after, hitUnits],
    expiresInUs: resetUs,
  }
}

/** The time of the state and its level, converted to the units of the current limit. */
function lastWrite(input: DecisionInput, hitUnits: number) {
  const { state, nowUs } = input
  const stateUs = state?.[0] ?? nowUs
  const storedUnits = state?.[1] ?? 0
  const storedHitUnits = state?.[2] ?? hitUnits
  const isClamped = isTooFarAhead(stateUs, input)
  // If the limit has changed, a hit is worth other units: the number of used hits is kept.
  const usedUnits =
    storedHitUnits === hitUnits ? storedUnits : Math.ceil((storedUnits / storedHitUnits) * hitUnits)
  return { stateTimeUs: isClamped ? nowUs : stateUs, usedUnits, isClamped }
}

/** Units of the level that a hit adds, and that a microsecond drains. */
interface BucketUnits {
  readonly hitUnits: number
  readonly drainUnits: number
}

const unitsCache = new WeakMap<object, BucketUnits>()

/** The units of a limit: `windowUs` and `requests` as a reduced fraction; cached. */
function bucketUnitsOf(limit: Limit): BucketUnits {
  let units = unitsCache.get(limit)
  if (units === undefined) {
    const divisor = commonDivisor(limit.windowUs, limit.requests)
    units = { hitUnits: limit.windowUs / divisor, drainUnits: limit.requests / divisor }
    unitsCache.set(limit, units)
  }
  return units
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/** The decision for a limit of 0 requests, whose bucket never drains. */
function zeroLimitDecision(hits: number): Decision {
  const admitted = hits < 0
  const retryAfterUs = admitted ? 0 : Infinity
  const over = admitted ? 0 : hits
  return { admitted, remaining: 0, over, resetUs: 0, retryAfterUs, next: undefined, expiresInUs: 0 }
}
