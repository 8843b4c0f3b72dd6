// Fixed window: counts hits per interval of the clock. Admits up to twice the limit across the
// boundary of two windows. It counts like envoyproxy/ratelimit.
import {
  type Algorithm,
  COUNT_MAX,
  type DecisionInput,
  isTooFarAhead,
  REQUESTS_MAX,
} from './algorithm.ts'

/** State: [start of the window, hits in it]. */
export const fixedWindow: Algorithm = {
  name: 'fixed_window',
  takesBurst: false,
  denyConsumesByDefault: true,
  maxRequests: REQUESTS_MAX,
  checkLimit: () => undefined,
  scriptNumbers: () => [],
  drains: false,
  refundableUs: ({ resetUs }) => resetUs,
  remainingAfter: ({ remaining }) => remaining,
  decide(input) {
    const { hits, nowUs, limit } = input
    const { requests, windowUs, denyConsumes } = limit
    const { startUs, count, isClamped } = windowOf(input)
    const after = Math.min(COUNT_MAX, Math.max(0, count + hits))
    // Without denied hits the count never exceeds the limit, so a read would always be admitted. A
    // read checks instead whether one more hit fits.
    const requested = hits === 0 && !denyConsumes ? count + 1 : after
    const admitted = hits < 0 || requested <= requests
    const kept = admitted || denyConsumes ? after : count
    const resetUs = startUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, requests - kept),
      over: admitted ? 0 : denyConsumes ? Math.min(hits, after - requests) : hits,
      resetUs,
      retryAfterUs: admitted ? 0 : hits <= requests ? resetUs : Infinity,
      next: kept === count && !isClamped ? undefined : [startUs, kept],
      expiresInUs: resetUs,
    }
  },
}

/** The current window. If the clock was set back, the stored hits still count in it. */
function windowOf(input: DecisionInput): { startUs: number; count: number; isClamped: boolean } {
  const { state, nowUs, limit } = input
  const [storedStartUs = -Infinity, storedCount = 0] = state ?? []
  const currentUs = nowUs - (nowUs % limit.windowUs)
  const isClamped = isTooFarAhead(storedStartUs, input)
  const startUs = isClamped ? currentUs : Math.max(currentUs, storedStartUs)
  return { startUs, count: isClamped || startUs === storedStartUs ? storedCount : 0, isClamped }
}
