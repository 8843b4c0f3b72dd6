// How long to wait after a failure: longer after each, with jitter, and short again after a while
// without one.
import type { Scheduler } from './scheduler.ts'

/** Bounds of the waits. */
export interface BackOffBounds {
  readonly firstMs: number
  readonly mostMs: number
  /** After so long without a failure the next wait is the first again. */
  readonly resetAfterMs: number
}

/** Waits after failures. */
export interface BackOff {
  /** The wait after the failure that has just happened: a step, and up to as much again. */
  readonly nextMs: () => number
}

/** The waits of a list or watch, as client-go has them. */
export const WATCH_BACK_OFF: BackOffBounds = {
  firstMs: 800,
  mostMs: 30_000,
  resetAfterMs: 120_000,
}

/** Makes waits that begin with the first. */
export function createBackOff(
  { firstMs, mostMs, resetAfterMs }: BackOffBounds,
  { scheduler, random }: { scheduler: Pick<Scheduler, 'nowMs'>; random: () => number },
): BackOff {
  let stepMs = firstMs
  let lastAtMs = -Infinity
  return {
    nextMs() {
      const nowMs = scheduler.nowMs()
      if (nowMs - lastAtMs > resetAfterMs) stepMs = firstMs
      const waitMs = Math.min(stepMs * (1 + random()), mostMs)
      lastAtMs = nowMs + waitMs
      stepMs = Math.min(stepMs * 2, mostMs)
      return waitMs
    },
  }
}
