// Waits for a condition, never for a fixed time, and always with a deadline.
import { setTimeout as sleep } from 'node:timers/promises'

const WAIT_MS_MAX = 20_000
const POLL_MS = 20
/** After a pause of this process, its timers run before it reads what arrived. */
const GRACE_MS = 100

/** Resolves once `isMet` returns true. Throws with `what` at the deadline. */
export async function waitFor(
  what: string,
  isMet: () => boolean | Promise<boolean>,
  msMax = WAIT_MS_MAX,
): Promise<void> {
  const endMs = performance.now() + msMax
  // After a pause of this process, the deadline may be over before it has read what arrived: the
  // last evaluation starts one poll after the deadline.
  for (let isLast = false; !(await isMet());) {
    if (isLast) throw new Error(`timed out after ${msMax} ms: ${what}`)
    isLast = performance.now() > endMs
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
  const { signal } = timer
  const timeout = sleep(msMax, undefined, { signal }).then(async () => {
    await sleep(GRACE_MS, undefined, { signal })
    throw new Error(`timed out after ${msMax} ms: ${what}`)
  })
  timeout.catch(() => undefined) // the timer is aborted below
  try {
    return await Promise.race([promise, timeout])
  } finally {
    timer.abort()
  }
}
