// Waits until a store is idle between its writes and its measurement.
import { setTimeout } from 'node:timers/promises'
import { cpuUsOf } from './process-figures.ts'

/** The store has settled when its nodes together use less than this fraction of a core. */
const SETTLED_SHARE = 0.2
const SETTLE_MS_MAX = 180_000
const STEP_MS = 3000

/** Waits until the store has settled; logs a message if it has not within the time limit. */
export async function untilSettled(
  nodes: readonly { readonly pid: () => number }[],
  log: (line: string) => void,
): Promise<void> {
  const cpuUs = () => nodes.reduce((sum, node) => sum + cpuUsOf(node.pid()), 0)
  const startMs = performance.now()
  while (performance.now() - startMs < SETTLE_MS_MAX) {
    const beforeUs = cpuUs()
    await setTimeout(STEP_MS)
    if (cpuUs() - beforeUs >= SETTLED_SHARE * STEP_MS * 1000) continue
    log(`the store settled in ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
    return
  }
  log(`the store has not settled in ${SETTLE_MS_MAX / 1000} s: its figures include that work`)
}
