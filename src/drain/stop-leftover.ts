// Stops an Envoy that already drains when its sidecar starts. An earlier sidecar started that drain
// and was restarted without Envoy, such as by a liveness probe: in a terminating pod no container
// restarts. A drain cannot be reverted, so this Envoy must exit; the kubelet starts a new one.
import { type Clock, pause as wait, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin } from './envoy.ts'

/** How long Envoy is polled; the kubelet kills a hung Envoy. */
export const LEFTOVER_MS_MAX = 10_000
const POLL_EVERY_MS = 100

/** Resolves once Envoy does not drain, has exited, or LEFTOVER_MS_MAX has passed. */
export async function stopLeftoverEnvoy(options: {
  readonly envoy: Pick<EnvoyAdmin, 'readReadiness' | 'quit'>
  readonly nowMs: Clock
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): Promise<void> {
  const { envoy, nowMs, log, pause = wait } = options
  const endMs = nowMs() + LEFTOVER_MS_MAX
  let isLogged = false
  for (;;) {
    const readiness = await envoy.readReadiness()
    if (readiness !== 'unresponsive' && readiness !== 'draining') return
    if (readiness === 'draining') {
      if (!isLogged)
        log.warn(
          'Envoy is draining in a pod that continues: stopping Envoy, the kubelet restarts it',
        )
      isLogged = true
      await envoy.quit()
    }
    if (nowMs() >= endMs) return
    await pause(POLL_EVERY_MS)
  }
}
