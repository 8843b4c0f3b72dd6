// One deadline for many calls at once: all wait equally long, so one timer serves them in their
// order. A timer of its own for each call would cost more than the call.

/** Calls that must be answered within a time. */
export interface DeadlineQueue {
  /** What `promise` gives, or `undefined` once the time has passed. Throws what it throws. */
  within<T>(promise: Promise<T>): Promise<T | undefined>
}

interface Waiting {
  readonly untilMs: number
  isDone: boolean
  readonly expire: () => void
}

/** A timer that is later than this was late because this process was busy or held. */
const SLEPT_MS_MIN = 5

/** Makes a queue whose calls have `ms` each; `nowMs` is monotonic. */
export function createDeadlineQueue(ms: number, nowMs: () => number): DeadlineQueue {
  let waiting: Waiting[] = []
  let isArmed = false
  let hasWaitedLonger = false

  const arm = (delayMs: number) => {
    isArmed = true
    // Timers come before what sockets have to tell: an answer that is there already is taken first.
    const dueMs = nowMs() + Math.max(0, delayMs)
    setTimeout(() => setImmediate(expireDue, dueMs), Math.max(0, delayMs))
  }
  const expireDue = (dueMs: number) => {
    const nowAtMs = nowMs()
    // Who slept itself, as in a collection of garbage, cannot tell that nobody answered meanwhile.
    const sleptMs = nowAtMs - dueMs
    if (sleptMs > SLEPT_MS_MIN && !hasWaitedLonger) {
      hasWaitedLonger = true
      arm(Math.min(sleptMs, ms))
      return
    }
    hasWaitedLonger = false
    const firstLeft = waiting.findIndex(({ isDone, untilMs }) => !isDone && untilMs > nowAtMs)
    const due = waiting.slice(0, firstLeft < 0 ? undefined : firstLeft)
    waiting = firstLeft < 0 ? [] : waiting.slice(firstLeft)
    for (const { isDone, expire } of due) if (!isDone) expire()
    const next = waiting[0]
    isArmed = false
    if (next !== undefined) arm(next.untilMs - nowAtMs)
  }
  return {
    within: <T>(promise: Promise<T>) =>
      new Promise<T | undefined>((resolve, reject) => {
        const entry: Waiting = {
          untilMs: nowMs() + ms,
          isDone: false,
          expire: () => {
            entry.isDone = true
            resolve(undefined)
          },
        }
        waiting.push(entry)
        if (!isArmed) arm(ms)
        promise.then(
          (value) => {
            entry.isDone = true
            resolve(value)
          },
          (error: unknown) => {
            entry.isDone = true
            reject(error instanceof Error ? error : new Error(String(error)))
          },
        )
      }),
  }
}
