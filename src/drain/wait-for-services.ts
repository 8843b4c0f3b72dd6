// Waits for the services behind a starting Envoy, until each has a healthy pod or a deadline has
// passed: the edge must serve the available services even if another one never starts.
import { type Clock, pause as realPause, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import { type EnvoyAdmin, SERVICES } from './envoy.ts'

/** Deadline if no service is available, as in a new installation whose store is not ready yet. */
export const NO_SERVICE_MS_MAX = 300_000
/** Deadline once a service is available: longer than the TTL of a negative DNS response. */
export const REMAINING_SERVICES_MS_MAX = 120_000
const POLL_EVERY_MS = 250

/** The wait for the services behind one Envoy. */
export interface ServiceWait {
  /** Whether the wait has completed or timed out; it never restarts. */
  isComplete(): boolean
  /** Resolves once the wait has completed, timed out or been aborted. */
  readonly settled: Promise<void>
}

/** Starts the wait; it logs a warning if it times out. */
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
  let isComplete = false
  const poll = async () => {
    const unreachable = await envoy.findUnreachable()
    const hasService = typeof unreachable !== 'string' && unreachable.length < SERVICES.length
    if (hasService) firstFoundMs ??= nowMs()
    const deadlineMs =
      firstFoundMs === undefined
        ? startMs + NO_SERVICE_MS_MAX
        : firstFoundMs + REMAINING_SERVICES_MS_MAX
    const hasAllServices = hasService && unreachable.length === 0
    const hasTimedOut = nowMs() >= deadlineMs
    if (hasTimedOut && !hasAllServices)
      log.warn({ unreachable }, 'upstream services: wait timed out')
    return hasAllServices || hasTimedOut
  }
  const wait = async () => {
    while (!signal.aborted) {
      isComplete = await poll()
      if (isComplete) return
      await pause(POLL_EVERY_MS, signal)
    }
  }
  return { isComplete: () => isComplete, settled: wait() }
}
