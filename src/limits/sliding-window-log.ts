// Sliding window log: keeps the time of each admitted hit and counts those within the window.
// Exact, with memory proportional to the limit, which rules therefore bound.
import { type Algorithm, type Charge, isTooFarAhead } from './algorithm.ts'

/** State: times of the hits, oldest first. */
export const slidingWindowLog: Algorithm = {
  name: 'sliding_window_log',
  takesBurst: false,
  decide(charge) {
    const { cost, nowUs, limit } = charge
    const { requests, windowUs } = limit
    const { seen, isClamped } = clamped(charge)
    const atUs = Math.max(nowUs, seen.at(-1) ?? nowUs) // a clock set back forgets nothing
    const hits = seen.filter((hitUs) => hitUs > atUs - windowUs)
    const admitted = cost <= 0 ? cost < 0 || hits.length < requests : hits.length + cost <= requests
    const after = !admitted || cost === 0 ? hits : changed(hits, cost, atUs)
    const newestUs = after.at(-1)
    const resetUs = newestUs === undefined ? 0 : newestUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, requests - after.length),
      over: admitted ? 0 : cost,
      resetUs,
      retryAfterUs: admitted ? 0 : waitUs({ hits, cost: Math.max(1, cost), limit }) - nowUs,
      next: after.length === seen.length && cost <= 0 && !isClamped ? undefined : after,
      expiresInUs: resetUs,
    }
  },
}

/** The hits; those too far ahead get the time of the last one before them, at least now. */
function clamped(charge: Charge): { seen: readonly number[]; isClamped: boolean } {
  const seen = charge.state ?? []
  if (!isTooFarAhead(seen.at(-1) ?? 0, charge)) return { seen, isClamped: false }
  const good = seen.filter((hitUs) => !isTooFarAhead(hitUs, charge))
  const atUs = Math.max(charge.nowUs, good.at(-1) ?? 0)
  const moved = Array.from({ length: seen.length - good.length }, () => atUs)
  return { seen: [...good, ...moved], isClamped: true }
}

function changed(hits: readonly number[], cost: number, atUs: number): number[] {
  if (cost < 0) return hits.slice(0, Math.max(0, hits.length + cost))
  return [...hits, ...Array.from({ length: cost }, () => atUs)]
}

/** When enough of the hits have left the window. */
function waitUs(given: {
  hits: readonly number[]
  cost: number
  limit: { requests: number; windowUs: number }
}) {
  const { hits, cost, limit } = given
  if (cost > limit.requests) return Infinity
  const leaving = hits[hits.length + cost - limit.requests - 1] ?? 0
  return leaving + limit.windowUs
}
