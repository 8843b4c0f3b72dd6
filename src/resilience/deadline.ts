// Deadlines and pauses. Whatever waits for somebody else waits through one of these.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Milliseconds since the Unix epoch, unless its name says `monotonic`; injected wherever a decision
 * depends on the time.
 */
export type Clock = () => number

/** Milliseconds by a clock that is never set back: for deadlines, and no date. */
export const monotonicMs: Clock = () => performance.now()

/**
 * Microseconds since the Unix epoch by a clock that nobody sets back, for counters: they would wait
 * for a time that they have seen.
 */
export const steadyNowUs = (): number => (performance.timeOrigin + performance.now()) * 1000

/** Waits some milliseconds, or until a signal aborts. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>

/** Waits `ms`, or until `signal` aborts; never throws for the abort. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error
  })
}

/** What `promise` gives, or what `late` throws once `ms` have passed. */
export async function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(late())
    }, ms)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    clearTimeout(timer)
  }
}
