// Exponential back-off with jitter; it resets after a period without failures.
import type { Scheduler } from './scheduler.ts'

/** Bounds of the delays. */
export interface BackOffBounds {
  readonly initialMs: number
  readonly maxMs: number
  /** After so long without a failure the next delay is the initial one. */
  readonly resetAfterMs: number
}

/** Delays after failures. */
export interface BackOff {
  /** The delay after a failure that just happened: a step plus up to 100 % jitter. */
  readonly nextMs: () => number
}

/** client-go's delays of a list or watch. */
export const WATCH_BACK_OFF: BackOffBounds = {
  initialMs: 800,
  maxMs: 30_000,
  resetAfterMs: 120_000,
}

/** Creates a back-off whose first delay is the initial one. */
export function createBackOff(
  { initialMs, maxMs, resetAfterMs }: BackOffBounds,
  { scheduler, random }: { scheduler: Pick<Scheduler, 'nowMs'>; random: () => number },
): BackOff {
  let stepMs = initialMs
  let lastAtMs = -Infinity
  return {
    nextMs() {
      const nowMs = scheduler.nowMs()
      if (nowMs - lastAtMs > resetAfterMs) stepMs = initialMs
      const delayMs = Math.min(stepMs * (1 + random()), maxMs)
      lastAtMs = nowMs + delayMs
      stepMs = Math.min(stepMs * 2, maxMs)
      return delayMs
    },
  }
}
