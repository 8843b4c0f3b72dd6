// Waits for the services behind an Envoy that is starting: until it has found pods of each, or for
// so long and no longer: what works without one of them must not wait for it for ever.
import { type Clock, pause as wait, type Pause } from '../../process/deadline.ts'
import type { Log } from '../../process/log.ts'
import type { EnvoyAdmin } from './envoy-admin.ts'

/** Longer than a cluster's DNS remembers that there were no pods: CoreDNS does for 30 s. */
export const REACH_MS_MAX = 40_000
const LOOK_EVERY_MS = 250

/** What is behind one Envoy. */
export interface Reach {
  /** Whether it is waited for no longer; from then on for good. */
  isOver(): boolean
  readonly settled: Promise<void>
}

/** Begins to wait. */
export function watchReach(given: {
  readonly envoy: Pick<EnvoyAdmin, 'countUnreached'>
  readonly nowMs: Clock
  readonly signal: AbortSignal
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): Reach {
  const { envoy, nowMs, signal, log, pause = wait } = given
  const endMs = nowMs() + REACH_MS_MAX
  let isOver = false
  const watch = async () => {
    while (!signal.aborted && !isOver) {
      const unreached = await envoy.countUnreached()
      const isLate = nowMs() >= endMs
      isOver = unreached === 0 || isLate
      if (isLate && unreached !== 0) log.warn({ unreached }, 'ready without a service behind it')
      if (!isOver) await pause(LOOK_EVERY_MS, signal)
    }
  }
  return { isOver: () => isOver, settled: watch() }
}
