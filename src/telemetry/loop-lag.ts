// Measures the lag of the event loop: for each tick of a fixed-rate clock, how long after the tick
// the loop ran. A stall counts once for each tick that it delayed, as it would for requests that
// arrive at a fixed rate. Independent of metrics.

/** Interval between two ticks. In an idle process, each takes about 0.1 ms of CPU time. */
export const TICK_MS = 100
/** Maximum number of ticks counted per stall (the last minute), in case a process was frozen. */
export const TICKS_MAX = 600

/** Calls `observe` with the lag of each tick, in seconds; returns a function that stops. */
export function watchLoopLag(options: {
  /** A monotonic clock. */
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
    timer = setTimeout(tick, Math.ceil(dueMs - now)).unref() // Node.js truncates fractions
  }
  return () => {
    clearTimeout(timer)
  }
}
