// Stops an Envoy that is already draining when the role `drain` starts. The role's
// previous process started the drain and was restarted without Envoy, for example by a liveness
// probe. The pod is not terminating, because its containers would not restart then. A drain cannot
// be reverted, so Envoy must exit: the kubelet starts a new one.
import { type Clock, pause as realPause, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin } from './envoy.ts'

/** How long Envoy is polled, in milliseconds; a hung Envoy is left to the kubelet. */
export const LEFTOVER_MS_MAX = 10_000
const POLL_EVERY_MS = 100
const LEFTOVER = 'Envoy is draining, but its pod is not terminating'

/**
 * Stops a draining Envoy. Resolves once Envoy has exited or does not drain, at the deadline, or
 * when `signal` aborts: the pod itself then terminates.
 */
export async function stopLeftoverEnvoy(options: {
  readonly envoy: Pick<EnvoyAdmin, 'readReadiness' | 'quit'>
  readonly nowMs: Clock
  readonly signal: AbortSignal
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): Promise<void> {
  const { envoy, nowMs, signal, log, pause = realPause } = options
  const deadlineMs = nowMs() + LEFTOVER_MS_MAX
  let hasWarned = false
  for (;;) {
    const readiness = await envoy.readReadiness()
    if (signal.aborted) return
    if (readiness !== 'unresponsive' && readiness !== 'draining') return
    if (readiness === 'draining') {
      if (!hasWarned) log.warn(`${LEFTOVER}: stopping Envoy, the kubelet restarts it`)
      hasWarned = true
      await envoy.quit()
    }
    if (nowMs() >= deadlineMs) return
    await pause(POLL_EVERY_MS, signal)
  }
}
