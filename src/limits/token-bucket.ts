// Token bucket: admits a burst, then hits at the refill rate. Refill is continuous and capped.
import { type Algorithm, type DecisionInput, type Decision, isTooFarAhead } from './algorithm.ts'

/** State: [time of the write, used parts of the bucket at that time, parts per hit]. */
export const tokenBucket: Algorithm = {
  name: 'token_bucket',
  takesBurst: true,
  decide: (input) => decideByDrain(input, { burst: input.limit.burst }),
}

/**
 * The bucket as a level that hits raise and time lowers. A hit adds `hitParts` parts, and a
 * microsecond drains `drainParts`: whole numbers, so that nothing is lost by rounding.
 */
export function decideByDrain(
  input: DecisionInput,
  /** Hits that are admitted at once; `singleHits`: of these, hits admitted one by one. */
  { burst, singleHits = burst }: { burst: number; singleHits?: number },
): Decision {
  const { cost, nowUs, limit } = input
  if (limit.requests === 0) return bannedDecision(cost)
  const { hitParts, drainParts } = partsOf(limit)
  const { stateTimeUs, usedParts, isClamped } = lastWrite(input, hitParts)
  const atUs = Math.max(nowUs, stateTimeUs) // a clock set back refills nothing
  const level = Math.max(0, usedParts - (atUs - stateTimeUs) * drainParts)
  const full = burst * hitParts
  const requested = level + Math.max(1, cost) * hitParts
  const admitted = cost < 0 || requested <= full
  const after = admitted ? Math.max(0, level + cost * hitParts) : level
  // If the clock was set back, nothing drains until it reaches the time of the state.
  const untilUs = (parts: number) => atUs - nowUs + Math.ceil(parts / drainParts)
  const resetUs = after === 0 ? 0 : untilUs(after)
  return {
    admitted,
    remaining: Math.max(0, Math.floor((singleHits * hitParts - after) / hitParts)),
    over: admitted ? 0 : cost,
    resetUs,
    retryAfterUs: admitted ? 0 : cost > burst ? Infinity : untilUs(requested - full),
    next: after === level && !isClamped ? undefined : [atUs, after, hitParts],
    expiresInUs: resetUs,
  }
}

/** The time of the state, and the used parts at that time, in parts of the current limit. */
function lastWrite(input: DecisionInput, hitParts: number) {
  const { state, nowUs } = input
  const [stateUs = nowUs, storedParts = 0, ofParts = hitParts] = state ?? []
  const isClamped = isTooFarAhead(stateUs, input)
  // If the number of requests has changed, so have the parts per hit; used hits stay used.
  const usedParts =
    ofParts === hitParts ? storedParts : Math.ceil((storedParts / ofParts) * hitParts)
  return { stateTimeUs: isClamped ? nowUs : stateUs, usedParts, isClamped }
}

/** Parts of a hit and of a microsecond. */
interface Parts {
  readonly hitParts: number
  readonly drainParts: number
}

const partsKnown = new WeakMap<object, Parts>()

/** Parts of a limit: `windowUs` and `requests` without their common divisor, computed once. */
export function partsOf(limit: { requests: number; windowUs: number }): Parts {
  let parts = partsKnown.get(limit)
  if (parts === undefined) {
    const divisor = commonDivisor(limit.windowUs, limit.requests)
    parts = { hitParts: limit.windowUs / divisor, drainParts: limit.requests / divisor }
    partsKnown.set(limit, parts)
  }
  return parts
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/** A limit of 0 requests: a bucket that never drains. */
function bannedDecision(cost: number): Decision {
  const admitted = cost < 0
  const retryAfterUs = admitted ? 0 : Infinity
  const over = admitted ? 0 : cost
  return { admitted, remaining: 0, over, resetUs: 0, retryAfterUs, next: undefined, expiresInUs: 0 }
}
