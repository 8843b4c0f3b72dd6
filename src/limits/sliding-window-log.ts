// Sliding window log: stores the time of each admitted hit and counts those within the window.
// Exact, with memory proportional to the limit, which rules therefore bound.
import { type Algorithm, type DecisionInput, isTooFarAhead } from './algorithm.ts'

/** State: times of the hits, oldest first. */
export const slidingWindowLog: Algorithm = {
  name: 'sliding_window_log',
  takesBurst: false,
  denyConsumesByDefault: false,
  maxRequests: 10_000, // it stores the time of each hit
  checkLimit: () => undefined,
  scriptNumbers: () => [],
  decide(input) {
    const { cost, nowUs, limit } = input
    const { requests, windowUs } = limit
    const { stored, isClamped } = clamped(input)
    const atUs = Math.max(nowUs, stored.at(-1) ?? nowUs) // setting the clock back drops no hits
    const hits = stored.filter((hitUs) => hitUs > atUs - windowUs)
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
      next: after.length === stored.length && cost <= 0 && !isClamped ? undefined : after,
      expiresInUs: resetUs,
    }
  },
}

/** The hits; those too far ahead get the time of the last hit before them, at least `nowUs`. */
function clamped(input: DecisionInput): { stored: readonly number[]; isClamped: boolean } {
  const stored = input.state ?? []
  if (!isTooFarAhead(stored.at(-1) ?? 0, input)) return { stored, isClamped: false }
  const good = stored.filter((hitUs) => !isTooFarAhead(hitUs, input))
  const atUs = Math.max(input.nowUs, good.at(-1) ?? 0)
  const moved = Array.from({ length: stored.length - good.length }, () => atUs)
  return { stored: [...good, ...moved], isClamped: true }
}

function changed(hits: readonly number[], cost: number, atUs: number): number[] {
  if (cost < 0) return hits.slice(0, Math.max(0, hits.length + cost))
  return [...hits, ...Array.from({ length: cost }, () => atUs)]
}

/** The time at which enough hits have left the window. */
function waitUs(input: {
  hits: readonly number[]
  cost: number
  limit: { requests: number; windowUs: number }
}) {
  const { hits, cost, limit } = input
  if (cost > limit.requests) return Infinity
  const leaving = hits[hits.length + cost - limit.requests - 1] ?? 0
  return leaving + limit.windowUs
}
