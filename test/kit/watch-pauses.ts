// Measures pauses of this process itself, such as a stalled machine, which no server can prevent.

const TICK_MS = 5
/** A tick delayed by more than this means that the whole machine stalled. */
const STILL_MS_MIN = 1000

/** A running watch. */
export interface PauseWatch {
  /** The longest pause so far, ms. */
  longestMs(): number
  /** Whether the whole machine stalled after this time of `performance.now()`. */
  wasStalledAfter(ms: number): boolean
  stop(): void
}

/** Starts to watch. */
export function watchPauses(): PauseWatch {
  let longestMs = 0
  let stillUntilMs = -Infinity
  let lookedMs = performance.now()
  const look = () => {
    const nowMs = performance.now()
    const pauseMs = nowMs - lookedMs
    longestMs = Math.max(longestMs, pauseMs)
    if (pauseMs > STILL_MS_MIN) stillUntilMs = nowMs
    lookedMs = nowMs
  }
  const tick = setInterval(look, TICK_MS)
  return {
    longestMs() {
      look() // events may be handled before the tick
      return longestMs
    },
    wasStalledAfter(ms) {
      look()
      return stillUntilMs > ms
    },
    stop() {
      clearInterval(tick)
    },
  }
}

/** The duration of `work` minus the longest pause meanwhile, ms. */
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
