// Clocks, pauses and the deadline of a single wait.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Milliseconds since the Unix epoch, or of a monotonic clock if only differences matter; injected
 * wherever a decision depends on the time.
 */
export type Clock = () => number

/** Milliseconds of a monotonic clock: for deadlines, not for dates. */
export const monotonicMs: Clock = () => performance.now()

/** Read once, because the property is a getter. */
const originMs = performance.timeOrigin

/**
 * Microseconds since the Unix epoch, by a monotonic clock. For rate-limit counters: with the system
 * clock, a backward step would stop their windows until the clock reaches the old time.
 */
export const steadyNowUs = (): number => (originMs + performance.now()) * 1000

/** Waits `ms` milliseconds, or until `signal` aborts. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>

/** Waits `ms` milliseconds, or until `signal` aborts; never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error
  })
}

/** The result of `promise`; throws `timeoutError()` after `ms` milliseconds. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  timeoutError: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(timeoutError())
    }, ms)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    clearTimeout(timer)
  }
}
