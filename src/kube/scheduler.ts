// The time source of this folder: a monotonic clock and timers. Tests replace it with a fake.
import { once } from 'node:events'

/** A clock and timers. */
export interface Scheduler {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
  /** Calls `call` once after `ms` milliseconds; returns a function that cancels it. */
  readonly after: (ms: number, call: () => void) => () => void
}

/** The longest delay of a Node.js timer, in milliseconds. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** The monotonic clock of the process, and Node.js timers. */
export const systemScheduler: Scheduler = {
  nowMs: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(ms, TIMER_MS_MAX))
    return () => {
      clearTimeout(timer)
    }
  },
}

/** Waits `ms` milliseconds, or until `signal` aborts; never rejects. */
export async function pauseFor(
  scheduler: Scheduler,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = createDeadline(scheduler, ms, signal)
  await untilAborted(deadline.signal)
  deadline.clear()
}

/**
 * Resolves to whether `work` completes within `ms` milliseconds, and rejects if it fails within
 * them. Does not abort `work`.
 */
export async function completesWithin(
  scheduler: Scheduler,
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  const { signal, clear } = createDeadline(scheduler, ms, undefined)
  try {
    return await Promise.race([work.then(() => true), untilAborted(signal).then(() => false)])
  } finally {
    clear()
  }
}

/**
 * Creates a signal that aborts with `parent` or after `ms` milliseconds. Callers must call `clear`
 * when the work is done.
 */
export function createDeadline(
  scheduler: Scheduler,
  ms: number,
  parent: AbortSignal | undefined,
): { readonly signal: AbortSignal; readonly timedOut: () => boolean; readonly clear: () => void } {
  const own = new AbortController()
  let timedOut = false
  const onAbort = () => {
    own.abort()
  }
  const cancel = scheduler.after(ms, () => {
    timedOut = true
    own.abort()
  })
  if (parent?.aborted === true) own.abort()
  parent?.addEventListener('abort', onAbort)
  return {
    signal: own.signal,
    timedOut: () => timedOut,
    clear() {
      cancel()
      parent?.removeEventListener('abort', onAbort)
    },
  }
}

/** Resolves once `signal` has aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
