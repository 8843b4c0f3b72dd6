// Sliding window counter: the hits of this window, and the overlapping share of the previous one.
// Approximate, in constant memory, without the burst at a boundary.
import { type Algorithm, isTooFarAhead } from './algorithm.ts'

/** State: [start of the window, hits in it, hits in the previous one]. */
export const slidingWindowCounter: Algorithm = {
  name: 'sliding_window_counter',
  takesBurst: false,
  decide(charge) {
    const { state, cost, nowUs, limit } = charge
    const { requests, windowUs } = limit
    const [writtenUs = -Infinity, seen = 0, seenBefore = 0] = state ?? []
    const currentUs = nowUs - (nowUs % windowUs)
    const isClamped = isTooFarAhead(writtenUs, charge)
    const seenStartUs = isClamped ? currentUs : writtenUs
    const startUs = Math.max(currentUs, seenStartUs)
    const passed = (startUs - seenStartUs) / windowUs
    const current = passed === 0 ? seen : 0
    const before = passed === 0 ? seenBefore : passed === 1 ? seen : 0
    const window: View = {
      requests,
      windowUs,
      current,
      before,
      elapsedUs: nowUs - startUs,
    }
    const admitted = cost < 0 || estimate(window) + Math.max(1, cost) <= requests
    const after = { ...window, current: admitted ? Math.max(0, current + cost) : current }
    const resetUs = resetOf(after)
    return {
      admitted,
      remaining: Math.max(0, Math.floor(requests - estimate(after))),
      over: admitted ? 0 : cost,
      resetUs,
      retryAfterUs: admitted ? 0 : waitUs(window, Math.max(1, cost)),
      next: after.current === current && !isClamped ? undefined : [startUs, after.current, before],
      expiresInUs: startUs + 2 * windowUs - nowUs,
    }
  },
}

/** A counter at one moment. */
interface View {
  readonly requests: number
  readonly windowUs: number
  readonly current: number
  readonly before: number
  /** Elapsed time of the window; below 0 if the clock was set back to before it. */
  readonly elapsedUs: number
}

function estimate({ windowUs, current, before, elapsedUs }: View): number {
  return current + (before * (windowUs - Math.max(0, elapsedUs))) / windowUs
}

/** Until no hit of it overlaps. */
function resetOf({ windowUs, current, before, elapsedUs }: View): number {
  if (current > 0) return 2 * windowUs - elapsedUs
  return before > 0 ? windowUs - elapsedUs : 0
}

/** Until so many hits fit: later in this window, or in the next one, which overlaps this one. */
function waitUs(window: View, cost: number): number {
  const { requests, windowUs, current, elapsedUs } = window
  if (cost > requests) return Infinity
  const here = firstFit(window, cost)
  if (here < windowUs) return here - elapsedUs
  const next: View = { ...window, current: 0, before: current, elapsedUs: 0 }
  return windowUs - elapsedUs + firstFit(next, cost)
}

/** The first elapsed time of the window at which the hits fit; at least its length if none. */
function firstFit({ requests, windowUs, current, before, elapsedUs }: View, cost: number): number {
  const room = requests - current - cost
  if (room < 0) return windowUs
  if (before <= room) return elapsedUs
  return Math.max(elapsedUs, Math.ceil(windowUs - (room * windowUs) / before))
}
