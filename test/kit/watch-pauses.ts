// Measures pauses of processes, such as those of a stalled machine, which no server can prevent.
import { existsSync, readFileSync } from 'node:fs'

const TICK_MS = 5
/** What exceeds this in a tick is a pause. */
const TICK_MS_MAX = 2 * TICK_MS
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

/**
 * How long the main thread of another process has waited for a CPU so far, in ms; 0 if the kernel
 * does not count it.
 */
function cpuWaitMs(pid: number): number {
  const path = `/proc/${String(pid)}/schedstat`
  if (!existsSync(path)) return 0
  const [, waitNs] = readFileSync(path, 'utf8').split(' ')
  return Number(waitNs) / 1e6
}

/**
 * The duration of `work` in ms, without the pauses of this process and without the time that the
 * main thread of process `pid` waited for a CPU. What coincides is subtracted once.
 */
export async function durationWithoutWaits(
  pid: number,
  work: () => Promise<unknown>,
): Promise<number> {
  const ticks: { readonly ms: number; waitedMs: number }[] = []
  let [measuredMs, totalWaitMs] = [performance.now(), cpuWaitMs(pid)]
  const measure = () => {
    const [nowMs, waitMs] = [performance.now(), cpuWaitMs(pid)]
    ticks.push({ ms: nowMs - measuredMs, waitedMs: 0 })
    // The kernel counts a wait at its end, so it may have started some ticks before.
    let restMs = waitMs - totalWaitMs
    for (const tick of ticks.toReversed()) {
      if (restMs <= 0) break
      const ownMs = Math.min(restMs, tick.ms - tick.waitedMs)
      tick.waitedMs += ownMs
      restMs -= ownMs
    }
    measuredMs = nowMs
    totalWaitMs = waitMs
  }
  const timer = setInterval(measure, TICK_MS)
  try {
    await work()
    measure()
    return ticks.reduce((sum, { ms, waitedMs }) => sum + Math.min(ms - waitedMs, TICK_MS_MAX), 0)
  } finally {
    clearInterval(timer)
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
