// The number of limiters: those that are connected, and those that have left recently, because
// their rules are unknown until they reconnect.

/** Counts limiters. */
export interface LimiterCount {
  /** Records how many are connected. */
  readonly observe: (connected: number, nowMs: number) => void
  /** The highest number within the last LIMITER_RECONNECT_MS. */
  readonly total: (nowMs: number) => number
  /** When the total can decrease; `undefined`: only after another change. */
  readonly nextChangeMs: () => number | undefined
}

/** A limiter reconnects within this time: its back-off is at most 60 s by default. */
export const LIMITER_RECONNECT_MS = 90_000

/** Creates a count without limiters. */
export function createLimiterCount(): LimiterCount {
  /** Earlier numbers, each with the end of its effect: the numbers decrease. */
  let earlier: { readonly count: number; readonly untilMs: number }[] = []
  let connected = 0
  return {
    observe(next, nowMs) {
      const left = { count: connected, untilMs: nowMs + LIMITER_RECONNECT_MS }
      const kept = earlier.filter(({ count, untilMs }) => untilMs > nowMs && count > connected)
      earlier = [...kept, left].filter(({ count }) => count > next)
      connected = next
    },
    total: (nowMs) => earlier.find(({ untilMs }) => untilMs > nowMs)?.count ?? connected,
    nextChangeMs: () => earlier[0]?.untilMs,
  }
}
