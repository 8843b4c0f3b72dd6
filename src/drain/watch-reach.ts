// Waits for the services behind an Envoy that is starting: until it has found pods of each, or for
// so long and no longer: what works without one of them must not wait for it for ever.
import { type Clock, pause as wait, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import { type EnvoyAdmin, SERVICES } from './envoy.ts'

/** How long nothing can be behind it, as in an installation whose store has yet to start. */
export const NOTHING_MS_MAX = 300_000
/** How long the others are waited for, once one is there: longer than DNS remembers an absence. */
export const OTHERS_MS_MAX = 120_000
const LOOK_EVERY_MS = 250

/** What is behind one Envoy. */
export interface Reach {
  /** Whether it is waited for no longer; from then on for good. */
  isOver(): boolean
  readonly settled: Promise<void>
}

/** Begins to wait. */
export function watchReach(given: {
  readonly envoy: Pick<EnvoyAdmin, 'findUnreached'>
  readonly nowMs: Clock
  readonly signal: AbortSignal
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): Reach {
  const { envoy, nowMs, signal, log, pause = wait } = given
  const beganMs = nowMs()
  let firstMs: number | undefined
  let isOver = false
  const look = async () => {
    const unreached = await envoy.findUnreached()
    const isSome = typeof unreached !== 'string' && unreached.length < SERVICES.length
    if (isSome) firstMs ??= nowMs()
    const endMs = firstMs === undefined ? beganMs + NOTHING_MS_MAX : firstMs + OTHERS_MS_MAX
    const isWhole = isSome && unreached.length === 0
    const isLate = nowMs() >= endMs
    if (isLate && !isWhole) log.warn({ unreached }, 'ready without a service behind it')
    return isWhole || isLate
  }
  const watch = async () => {
    while (!signal.aborted) {
      isOver = await look()
      if (isOver) return
      await pause(LOOK_EVERY_MS, signal)
    }
  }
  return { isOver: () => isOver, settled: watch() }
}
