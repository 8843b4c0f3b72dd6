// Waits for a condition, never for a fixed time, and always with a deadline.
import { setTimeout as sleep } from 'node:timers/promises'

const WAIT_MS_MAX = 20_000
const POLL_MS = 20

/** Resolves once `isMet` returns true. Throws with `what` at the deadline. */
export async function waitFor(
  what: string,
  isMet: () => boolean | Promise<boolean>,
  msMax = WAIT_MS_MAX,
): Promise<void> {
  const endMs = performance.now() + msMax
  while (!(await isMet())) {
    if (performance.now() > endMs) throw new Error(`timed out after ${msMax} ms: ${what}`)
    await sleep(POLL_MS)
  }
}

/** The value of `promise`. Throws with `what` if it does not settle within the deadline. */
export async function withinDeadline<T>(
  what: string,
  promise: Promise<T>,
  msMax = WAIT_MS_MAX,
): Promise<T> {
  const timer = new AbortController()
  const timeout = sleep(msMax, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`timed out after ${msMax} ms: ${what}`)
  })
  timeout.catch(() => undefined) // the timer is aborted below
  try {
    return await Promise.race([promise, timeout])
  } finally {
    timer.abort()
  }
}
