// Waits for the services behind a starting Envoy: until each has a pod, or a deadline passes,
// because the edge must serve the available services even if another never starts.
import { type Clock, pause as realPause, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import { type EnvoyAdmin, SERVICES } from './envoy.ts'

/** The wait while no service is available, as in a new installation without a store yet. */
export const NO_SERVICE_MS_MAX = 300_000
/** The wait for the rest once one is available: longer than the TTL of a negative DNS response. */
export const REMAINING_SERVICES_MS_MAX = 120_000
const POLL_EVERY_MS = 250

/** The wait for the services behind one Envoy. */
export interface ServiceWait {
  /** Whether the wait has completed; it never restarts. */
  isComplete(): boolean
  readonly settled: Promise<void>
}

/** Starts to wait. */
export function waitForServices(options: {
  readonly envoy: Pick<EnvoyAdmin, 'findUnreachable'>
  readonly nowMs: Clock
  readonly signal: AbortSignal
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): ServiceWait {
  const { envoy, nowMs, signal, log, pause = realPause } = options
  const startMs = nowMs()
  let firstFoundMs: number | undefined
  let isSettled = false
  const poll = async () => {
    const unreached = await envoy.findUnreachable()
    const hasService = typeof unreached !== 'string' && unreached.length < SERVICES.length
    if (hasService) firstFoundMs ??= nowMs()
    const endMs =
      firstFoundMs === undefined
        ? startMs + NO_SERVICE_MS_MAX
        : firstFoundMs + REMAINING_SERVICES_MS_MAX
    const isComplete = hasService && unreached.length === 0
    const hasTimedOut = nowMs() >= endMs
    if (hasTimedOut && !isComplete) log.warn({ unreached }, 'ready without an upstream service')
    return isComplete || hasTimedOut
  }
  const wait = async () => {
    while (!signal.aborted) {
      isSettled = await poll()
      if (isSettled) return
      await pause(POLL_EVERY_MS, signal)
    }
  }
  return { isComplete: () => isSettled, settled: wait() }
}
