// Measures pauses of this process, such as those of a stalled machine, which no server can prevent.

const TICK_MS = 5
/** A tick that is delayed by more than this indicates that the whole machine stalled. */
const STALL_MS_MIN = 1000

/** A running watch. */
export interface PauseWatch {
  /** The longest pause so far, in ms. */
  longestMs(): number
  /** Whether the whole machine stalled after this time of `performance.now()`. */
  wasStalledAfter(ms: number): boolean
  stop(): void
}

/** Starts to watch. */
export function watchPauses(): PauseWatch {
  let longestMs = 0
  let stalledUntilMs = -Infinity
  let measuredMs = performance.now()
  const measure = () => {
    const nowMs = performance.now()
    const pauseMs = nowMs - measuredMs
    longestMs = Math.max(longestMs, pauseMs)
    if (pauseMs > STALL_MS_MIN) stalledUntilMs = nowMs
    measuredMs = nowMs
  }
  const tick = setInterval(measure, TICK_MS)
  return {
    longestMs() {
      measure() // other events may be handled before the tick
      return longestMs
    },
    wasStalledAfter(ms) {
      measure()
      return stalledUntilMs > ms
    },
    stop() {
      clearInterval(tick)
    },
  }
}

/** The duration of `work` in ms, minus the longest pause during it. */
export async function durationWithoutPauses(work: () => Promise<unknown>): Promise<number> {
  const pauses = watchPauses()
  const startedMs = performance.now()
  try {
    await work()
    return performance.now() - startedMs - pauses.longestMs()
  } finally {
    pauses.stop()
  }
}
