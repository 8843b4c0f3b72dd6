// Runs a task once for a burst of changes: after a quiet time, but within a bound.
import type { Scheduler } from '../scheduler.ts'

/** Delays a task. */
export interface Debounce {
  /** Records a change. */
  readonly trigger: () => void
  /** Drops a pending run. */
  readonly cancel: () => void
}

/** `run` starts `quietMs` after the last change, but at the latest `msMax` after the first. */
export function createDebounce(given: {
  readonly scheduler: Scheduler
  readonly quietMs: number
  readonly msMax: number
  readonly run: () => void
}): Debounce {
  const { scheduler, quietMs, msMax, run } = given
  let pending: { readonly dueMs: number; readonly cancel: () => void } | undefined
  return {
    trigger() {
      const nowMs = scheduler.nowMs()
      const dueMs = pending?.dueMs ?? nowMs + msMax
      pending?.cancel()
      const start = () => {
        pending = undefined
        run()
      }
      const cancel = scheduler.after(Math.max(0, Math.min(quietMs, dueMs - nowMs)), start)
      pending = { dueMs, cancel }
    },
    cancel() {
      pending?.cancel()
      pending = undefined
    },
  }
}
