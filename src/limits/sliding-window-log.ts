// Sliding window log: stores the time of each admitted hit and counts those within the window.
// Exact, but its memory is proportional to the limit, so its `maxRequests` is low.
import { type Algorithm, type DecisionInput, isTooFarAhead } from './algorithm.ts'

/** State: times of the hits, oldest first. */
export const slidingWindowLog: Algorithm = {
  name: 'sliding_window_log',
  takesBurst: false,
  denyConsumesByDefault: false,
  maxRequests: 10_000, // it stores the time of each hit
  checkLimit: () => undefined,
  scriptNumbers: () => [],
  refundableUs: () => Infinity,
  decide(input) {
    const { cost, nowUs, limit } = input
    const { requests, windowUs } = limit
    const { stored, isClamped } = clampedHits(input)
    const atUs = Math.max(nowUs, stored.at(-1) ?? nowUs) // setting the clock back drops no hits
    const hits = stored.filter((hitUs) => hitUs > atUs - windowUs)
    const admitted = cost <= 0 ? cost < 0 || hits.length < requests : hits.length + cost <= requests
    const after = !admitted || cost === 0 ? hits : withCost(hits, cost, atUs)
    const newestUs = after.at(-1)
    const resetUs = newestUs === undefined ? 0 : newestUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, requests - after.length),
      over: admitted ? 0 : cost,
      resetUs,
      retryAfterUs: admitted ? 0 : admittedAtUs({ hits, cost: Math.max(1, cost), limit }) - nowUs,
      next: after.length === stored.length && cost <= 0 && !isClamped ? undefined : after,
      expiresInUs: resetUs,
    }
  },
}

/** The hits; those too far ahead move to the newest other hit, or to `nowUs` if that is later. */
function clampedHits(input: DecisionInput): { stored: readonly number[]; isClamped: boolean } {
  const stored = input.state ?? []
  if (!isTooFarAhead(stored.at(-1) ?? 0, input)) return { stored, isClamped: false }
  const plausible = stored.filter((hitUs) => !isTooFarAhead(hitUs, input))
  const atUs = Math.max(input.nowUs, plausible.at(-1) ?? 0)
  const moved = Array.from({ length: stored.length - plausible.length }, () => atUs)
  return { stored: [...plausible, ...moved], isClamped: true }
}

function withCost(hits: readonly number[], cost: number, atUs: number): number[] {
  if (cost < 0) return hits.slice(0, Math.max(0, hits.length + cost))
  return [...hits, ...Array.from({ length: cost }, () => atUs)]
}

/** The time at which enough hits have left the window; Infinity if they never fit. */
function admittedAtUs(input: {
  hits: readonly number[]
  cost: number
  limit: { requests: number; windowUs: number }
}) {
  const { hits, cost, limit } = input
  if (cost > limit.requests) return Infinity
  const leaving = hits[hits.length + cost - limit.requests - 1] ?? 0
  return leaving + limit.windowUs
}
