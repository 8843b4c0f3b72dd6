// A loop's sign of life: whoever asks learns whether it has turned lately. Starts and ends nothing.
import type { Scheduler } from './scheduler.ts'

/** The sign of life of one loop. */
export interface Pulse {
  /** The loop has turned. */
  readonly beat: () => void
  /** The loop has ended, and is not waited for. */
  readonly rest: () => void
  /** Whether the loop runs, and has not turned for too long. */
  readonly isLate: () => boolean
}

/** The pulse of a loop that is at rest; running, it must turn every `msMax` at least. */
export function createPulse(scheduler: Pick<Scheduler, 'nowMs'>, msMax: number): Pulse {
  let turnedMs: number | undefined
  return {
    beat() {
      turnedMs = scheduler.nowMs()
    },
    rest() {
      turnedMs = undefined
    },
    isLate: () => turnedMs !== undefined && scheduler.nowMs() - turnedMs > msMax,
  }
}
