// Exponential back-off with jitter; it resets after a period without failures.
import type { Scheduler } from './scheduler.ts'

/** Bounds of the delays, in milliseconds. */
export interface BackOffBounds {
  readonly initialMs: number
  readonly maxMs: number
  /** After a period of this length without a failure, the delays restart from `initialMs`. */
  readonly resetAfterMs: number
}

/** Delays after failures. */
export interface BackOff {
  /** Returns the delay after a failure. It doubles with each call; with jitter, up to `maxMs`. */
  readonly nextMs: () => number
}

/** client-go's delays after a failed list or watch. */
export const WATCH_BACK_OFF: BackOffBounds = {
  initialMs: 800,
  maxMs: 30_000,
  resetAfterMs: 120_000,
}

/** Creates a back-off whose first delay is `initialMs` plus jitter. */
export function createBackOff(
  { initialMs, maxMs, resetAfterMs }: BackOffBounds,
  { scheduler, random }: { scheduler: Pick<Scheduler, 'nowMs'>; random: () => number },
): BackOff {
  let baseMs = initialMs
  let lastDelayEndMs = -Infinity
  return {
    nextMs() {
      const nowMs = scheduler.nowMs()
      if (nowMs - lastDelayEndMs > resetAfterMs) baseMs = initialMs
      const delayMs = Math.min(baseMs * (1 + random()), maxMs)
      lastDelayEndMs = nowMs + delayMs
      baseMs = Math.min(baseMs * 2, maxMs)
      return delayMs
    },
  }
}
