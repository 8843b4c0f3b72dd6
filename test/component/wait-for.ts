// Waits in tests: for a condition, never for a time; each with a deadline.
import { setTimeout as sleep } from 'node:timers/promises'

const WAIT_MS_MAX = 20_000
const LOOK_EVERY_MS = 20

/** Resolves once `holds` gives true. Throws with `what` where it does not in time. */
export async function waitFor(
  what: string,
  holds: () => boolean | Promise<boolean>,
  msMax = WAIT_MS_MAX,
): Promise<void> {
  const endMs = performance.now() + msMax
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`waited ${msMax} ms in vain for ${what}`)
    await sleep(LOOK_EVERY_MS)
  }
}

/** What `promise` gives. Throws with `what` where it does not settle in time. */
export async function inTime<T>(
  what: string,
  promise: Promise<T>,
  msMax = WAIT_MS_MAX,
): Promise<T> {
  const timer = new AbortController()
  const late = sleep(msMax, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`waited ${msMax} ms in vain for ${what}`)
  })
  late.catch(() => undefined) // the wait that was won is given up
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
  }
}
