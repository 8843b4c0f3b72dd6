// The time source of this folder: a monotonic clock and timers. Tests replace it with a fake.

/** A clock and timers. */
export interface Scheduler {
  /** Monotonic. */
  readonly nowMs: () => number
  /** Calls `call` once after `ms`; returns a function that cancels it. */
  readonly after: (ms: number, call: () => void) => () => void
}

/** The longest delay of a Node.js timer. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** The system clock and Node.js timers. */
export const systemScheduler: Scheduler = {
  nowMs: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(ms, TIMER_MS_MAX))
    return () => {
      clearTimeout(timer)
    }
  },
}

/** Waits `ms`, or until `signal` aborts; never throws. */
export function pauseOn(scheduler: Scheduler, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = scheduler.after(ms, end)
    signal.addEventListener('abort', end)
  })
}

/** Whether `work` completes within `ms`; it continues otherwise. Throws its error within `ms`. */
export async function completesWithin(
  scheduler: Scheduler,
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  const done = new AbortController()
  const timeout = pauseOn(scheduler, ms, done.signal).then(() => false)
  try {
    return await Promise.race([work.then(() => true), timeout])
  } finally {
    done.abort()
  }
}

/** A signal that aborts with `parent` or after `ms`; callers must call `clear` when done. */
export function deadlineOn(
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
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
