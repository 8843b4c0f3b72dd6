// Time as the kit knows it: a clock that nobody sets back, and calls to be made later. Tests put
// their own in its place.

/** A clock and an alarm. */
export interface Scheduler {
  /** Monotonic. */
  readonly nowMs: () => number
  /** Calls `call` once after `ms`; what it gives takes that back. */
  readonly after: (ms: number, call: () => void) => () => void
}

/** The longest time that a timer of Node.js can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** The system's. */
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

/** Whether `work` ends within `ms`; if not, it goes on. Throws what it throws until then. */
export async function endsWithin(
  scheduler: Scheduler,
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  const ended = new AbortController()
  const late = pauseOn(scheduler, ms, ended.signal).then(() => false)
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    ended.abort()
  }
}

/** A signal that follows `parent` or aborts after `ms`; `end` must be called once it has served. */
export function deadlineOn(
  scheduler: Scheduler,
  ms: number,
  parent: AbortSignal | undefined,
): { readonly signal: AbortSignal; readonly isLate: () => boolean; readonly end: () => void } {
  const own = new AbortController()
  let isLate = false
  const follow = () => {
    own.abort()
  }
  const cancel = scheduler.after(ms, () => {
    isLate = true
    own.abort()
  })
  if (parent?.aborted === true) own.abort()
  parent?.addEventListener('abort', follow)
  return {
    signal: own.signal,
    isLate: () => isLate,
    end() {
      cancel()
      parent?.removeEventListener('abort', follow)
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
