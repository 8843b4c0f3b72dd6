// Sliding window counter: the hits of the current window plus the overlapping share of the previous
// one. Approximate, in constant memory, without the burst at a boundary.
import { type Algorithm, isTooFarAhead, REQUESTS_MAX } from './algorithm.ts'

/** State: [start of the window, hits in it, hits in the previous one]. */
export const slidingWindowCounter: Algorithm = {
  name: 'sliding_window_counter',
  takesBurst: false,
  denyConsumesByDefault: false,
  maxRequests: REQUESTS_MAX,
  checkLimit: () => undefined,
  scriptNumbers: () => [],
  drains: false,
  refundableUs: ({ resetUs }, { windowUs }) => resetUs % windowUs || windowUs,
  /** Assumes that all hits are in the current window: there they count for the longest time. */
  remainingAfter({ remaining, resetUs }, elapsedUs, { requests, windowUs }) {
    const overlapUs = Math.max(0, resetUs - elapsedUs)
    const share = Math.min(1, overlapUs / Math.max(1, Math.min(windowUs, resetUs)))
    return Math.floor(requests - (requests - remaining) * share)
  },
  decide(input) {
    const { state, hits, nowUs, limit } = input
    const { requests, windowUs } = limit
    const [stateStartUs = -Infinity, storedCurrent = 0, storedPrevious = 0] = state ?? []
    const currentUs = nowUs - (nowUs % windowUs)
    const isClamped = isTooFarAhead(stateStartUs, input)
    const storedStartUs = isClamped ? currentUs : stateStartUs
    const startUs = Math.max(currentUs, storedStartUs)
    const windowsPassed = (startUs - storedStartUs) / windowUs
    const current = windowsPassed === 0 ? storedCurrent : 0
    const previous = windowsPassed === 0 ? storedPrevious : windowsPassed === 1 ? storedCurrent : 0
    const window: Snapshot = {
      requests,
      windowUs,
      current,
      previous,
      elapsedUs: nowUs - startUs,
    }
    const admitted = hits < 0 || estimate(window) + Math.max(1, hits) <= requests
    const after = { ...window, current: admitted ? Math.max(0, current + hits) : current }
    const resetUs = resetOf(after)
    return {
      admitted,
      remaining: Math.max(0, Math.floor(requests - estimate(after))),
      over: admitted ? 0 : hits,
      resetUs,
      retryAfterUs: admitted ? 0 : waitUs(window, Math.max(1, hits)),
      next:
        after.current === current && !isClamped ? undefined : [startUs, after.current, previous],
      expiresInUs: startUs + 2 * windowUs - nowUs,
    }
  },
}

/** A counter at one moment. */
interface Snapshot {
  readonly requests: number
  readonly windowUs: number
  readonly current: number
  readonly previous: number
  /** Elapsed time of the window; negative if the clock was set back before its start. */
  readonly elapsedUs: number
}

function estimate({ windowUs, current, previous, elapsedUs }: Snapshot): number {
  return current + (previous * (windowUs - Math.max(0, elapsedUs))) / windowUs
}

/** Time until no counted hit overlaps the window. */
function resetOf({ windowUs, current, previous, elapsedUs }: Snapshot): number {
  if (current > 0) return 2 * windowUs - elapsedUs
  return previous > 0 ? windowUs - elapsedUs : 0
}

/**
 * Time until these hits fit: in the current window or else in the next one, where the `current`
 * hits have become `previous` ones.
 */
function waitUs(window: Snapshot, hits: number): number {
  const { requests, windowUs, current, elapsedUs } = window
  if (hits > requests) return Infinity
  const fitUs = firstFit(window, hits)
  // At least 1, because rounding can let denied hits fit now, and 0 means admitted.
  if (fitUs < windowUs) return Math.max(1, fitUs - elapsedUs)
  const next: Snapshot = { ...window, current: 0, previous: current, elapsedUs: 0 }
  return windowUs - elapsedUs + firstFit(next, hits)
}

/** Time since the window's start at which the hits first fit; `windowUs`: not before its end. */
function firstFit(
  { requests, windowUs, current, previous, elapsedUs }: Snapshot,
  hits: number,
): number {
  const available = requests - current - hits
  if (available < 0) return windowUs
  if (previous <= available) return elapsedUs
  return Math.max(elapsedUs, Math.ceil(windowUs - (available * windowUs) / previous))
}
