// A loop's heartbeat: reports whether the loop has iterated recently. Starts and stops nothing.
import type { Scheduler } from './scheduler.ts'

/** The heartbeat of one loop. */
export interface Heartbeat {
  /** The loop has started an iteration. */
  readonly beat: () => void
  /** The loop has stopped: no further beats are expected. */
  readonly stop: () => void
  /** Whether the loop is running and its last beat is too old. */
  readonly isStale: () => boolean
}

/** The heartbeat of a stopped loop; a running loop must beat at least every `msMax`. */
export function createHeartbeat(scheduler: Pick<Scheduler, 'nowMs'>, msMax: number): Heartbeat {
  let beatAtMs: number | undefined
  return {
    beat() {
      beatAtMs = scheduler.nowMs()
    },
    stop() {
      beatAtMs = undefined
    },
    isStale: () => beatAtMs !== undefined && scheduler.nowMs() - beatAtMs > msMax,
  }
}
