// Token bucket: admits a burst, then hits at the refill rate. Refill is continuous and capped.
import { type Algorithm, type Charge, type Decision, isTooFarAhead } from './algorithm.ts'

/** State: [when it was written, how much of the bucket was used then in parts, parts of a hit]. */
export const tokenBucket: Algorithm = {
  name: 'token_bucket',
  takesBurst: true,
  decide: (charge) => decideByDrain(charge, { burst: charge.limit.burst }),
}

/**
 * The bucket as a level that hits raise and time lowers. A hit is `hitParts` parts, and a
 * microsecond takes `drainParts` away: whole numbers, so that nothing is lost by rounding.
 */
export function decideByDrain(
  charge: Charge,
  /** Hits that are admitted at once; `room`: of these, hits that are admitted one by one. */
  { burst, room = burst }: { burst: number; room?: number },
): Decision {
  const { cost, nowUs, limit } = charge
  if (limit.requests === 0) return bannedDecision(cost)
  const { hitParts, drainParts } = partsOf(limit)
  const { writtenUs, written, isClamped } = lastWrite(charge, hitParts)
  const atUs = Math.max(nowUs, writtenUs) // a clock set back refills nothing
  const level = Math.max(0, written - (atUs - writtenUs) * drainParts)
  const full = burst * hitParts
  const asked = level + Math.max(1, cost) * hitParts
  const admitted = cost < 0 || asked <= full
  const after = admitted ? Math.max(0, level + cost * hitParts) : level
  // If the clock was set back, nothing drains until it reaches the time of the state.
  const untilUs = (parts: number) => atUs - nowUs + Math.ceil(parts / drainParts)
  const resetUs = after === 0 ? 0 : untilUs(after)
  return {
    admitted,
    remaining: Math.max(0, Math.floor((room * hitParts - after) / hitParts)),
    over: admitted ? 0 : cost,
    resetUs,
    retryAfterUs: admitted ? 0 : cost > burst ? Infinity : untilUs(asked - full),
    next: after === level && !isClamped ? undefined : [atUs, after, hitParts],
    expiresInUs: resetUs,
  }
}

/** The time of the state, and what was used then, in parts of the current limit. */
function lastWrite(charge: Charge, hitParts: number) {
  const { state, nowUs } = charge
  const [stateUs = nowUs, writtenParts = 0, ofParts = hitParts] = state ?? []
  const isClamped = isTooFarAhead(stateUs, charge)
  // With another number of requests a hit had other parts; used hits stay used.
  const written =
    ofParts === hitParts ? writtenParts : Math.ceil((writtenParts / ofParts) * hitParts)
  return { writtenUs: isClamped ? nowUs : stateUs, written, isClamped }
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
