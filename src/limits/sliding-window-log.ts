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
  drains: false,
  refundableUs: () => Infinity,
  remainingAfter: ({ remaining }) => remaining,
  decide(input) {
    const { hits, nowUs, limit } = input
    const { requests, windowUs } = limit
    const { stored, isClamped } = clampedHitTimes(input)
    const atUs = Math.max(nowUs, stored.at(-1) ?? nowUs) // setting the clock back drops no hits
    const hitTimes = stored.filter((hitUs) => hitUs > atUs - windowUs)
    const admitted =
      hits <= 0 ? hits < 0 || hitTimes.length < requests : hitTimes.length + hits <= requests
    const after = !admitted || hits === 0 ? hitTimes : withHits(hitTimes, hits, atUs)
    const newestUs = after.at(-1)
    const resetUs = newestUs === undefined ? 0 : newestUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, requests - after.length),
      over: admitted ? 0 : hits,
      resetUs,
      retryAfterUs: admitted
        ? 0
        : admittedAtUs({ hitTimes, hits: Math.max(1, hits), limit }) - nowUs,
      next: after.length === stored.length && hits <= 0 && !isClamped ? undefined : after,
      expiresInUs: resetUs,
    }
  },
}

/** The stored times; any too far ahead become `nowUs`, or the newest other time if it is later. */
function clampedHitTimes(input: DecisionInput): { stored: readonly number[]; isClamped: boolean } {
  const stored = input.state ?? []
  if (!isTooFarAhead(stored.at(-1) ?? 0, input)) return { stored, isClamped: false }
  const plausible = stored.filter((hitUs) => !isTooFarAhead(hitUs, input))
  const atUs = Math.max(input.nowUs, plausible.at(-1) ?? 0)
  const moved = Array.from({ length: stored.length - plausible.length }, () => atUs)
  return { stored: [...plausible, ...moved], isClamped: true }
}

function withHits(hitTimes: readonly number[], hits: number, atUs: number): number[] {
  if (hits < 0) return hitTimes.slice(0, Math.max(0, hitTimes.length + hits))
  return [...hitTimes, ...Array.from({ length: hits }, () => atUs)]
}

/** The time at which enough hits have left the window; Infinity if they never fit. */
function admittedAtUs(input: {
  hitTimes: readonly number[]
  hits: number
  limit: { requests: number; windowUs: number }
}) {
  const { hitTimes, hits, limit } = input
  if (hits > limit.requests) return Infinity
  const leaving = hitTimes[hitTimes.length + hits - limit.requests - 1] ?? 0
  return leaving + limit.windowUs
}
