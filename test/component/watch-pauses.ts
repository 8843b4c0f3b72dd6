// Sees when this process is held up itself, as by a machine that stalls: no server can help that.

const TICK_MS = 5
/** Where a tick is so late the whole machine stood still. */
const STILL_MS_MIN = 1000

/** A running watch. */
export interface PauseWatch {
  /** The longest pause so far, ms. */
  longestMs(): number
  /** Whether the whole machine stood still after this time of `performance.now()`. */
  stoodStillAfter(ms: number): boolean
  stop(): void
}

/** Begins to watch. */
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
      look() // what waited may be heard before the tick
      return longestMs
    },
    stoodStillAfter(ms) {
      look()
      return stillUntilMs > ms
    },
    stop() {
      clearInterval(tick)
    },
  }
}

/** How long `work` takes beyond the longest pause meanwhile, ms. */
export async function tookBesidePauses(work: () => Promise<unknown>): Promise<number> {
  const pauses = watchPauses()
  const begunMs = performance.now()
  try {
    await work()
    return performance.now() - begunMs - pauses.longestMs()
  } finally {
    pauses.stop()
  }
}
