// How late the event loop is: a clock ticks at a fixed rate, and for each tick it is measured how
// long after it the loop got there. A stall counts once for each tick that it held up, as it would
// for requests that come at a fixed rate. Knows no metrics.

/** Time between two ticks. */
export const TICK_MS = 20
/** Ticks measured of one stall: a minute's. Of a longer one, as of a frozen process, the last. */
export const TICKS_MAX = 3000

/** Calls `observe` with the lag of each tick, in seconds, until the function it gives is called. */
export function watchLoopLag(options: {
  /** A clock that never goes back. */
  readonly nowMs: () => number
  readonly observe: (lagSeconds: number) => void
}): () => void {
  const { nowMs, observe } = options
  let dueMs = nowMs() + TICK_MS
  let timer = setTimeout(tick, TICK_MS).unref()
  function tick(): void {
    const now = nowMs()
    const missed = Math.floor((now - dueMs) / TICK_MS)
    if (missed >= TICKS_MAX) dueMs += (missed - TICKS_MAX + 1) * TICK_MS
    for (; dueMs <= now; dueMs += TICK_MS) observe((now - dueMs) / 1000)
    timer = setTimeout(tick, Math.ceil(dueMs - now)).unref() // Node cuts what is behind the point
  }
  return () => {
    clearTimeout(timer)
  }
}
