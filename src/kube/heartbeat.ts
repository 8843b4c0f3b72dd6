// A loop's heartbeat: reports whether the loop has iterated recently. It does not run the loop.
import type { Scheduler } from './scheduler.ts'

/** The heartbeat of one loop. */
export interface Heartbeat {
  /** The loop has started an iteration. */
  readonly update: () => void
  /** The loop has stopped: no further updates are expected. */
  readonly stop: () => void
  /** Whether the loop is running and its last update is too old. */
  readonly isStale: () => boolean
}

/** Creates the heartbeat of a stopped loop; an update is stale after `msMax` milliseconds. */
export function createHeartbeat(scheduler: Pick<Scheduler, 'nowMs'>, msMax: number): Heartbeat {
  let updatedAtMs: number | undefined
  return {
    update() {
      updatedAtMs = scheduler.nowMs()
    },
    stop() {
      updatedAtMs = undefined
    },
    isStale: () => updatedAtMs !== undefined && scheduler.nowMs() - updatedAtMs > msMax,
  }
}
