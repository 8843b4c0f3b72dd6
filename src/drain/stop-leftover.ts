// An Envoy that drains already when its companion starts. The companion before has told it to and
// was ended alone, by a liveness probe for one: a pod on its way out starts no container again.
// There is no way back from a drain, so that this Envoy is ended, and another one started for it.
import { type Clock, pause as wait, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin } from './envoy.ts'

/** How long it is asked for; a hung Envoy is the kubelet's to end. */
export const LEFTOVER_MS_MAX = 10_000
const LOOK_EVERY_MS = 100

/** Resolves once Envoy does not drain, is gone, or the time for it is over. */
export async function endLeftover(given: {
  readonly envoy: Pick<EnvoyAdmin, 'askReady' | 'end'>
  readonly nowMs: Clock
  readonly log: Pick<Log, 'warn'>
  readonly pause?: Pause
}): Promise<void> {
  const { envoy, nowMs, log, pause = wait } = given
  const endMs = nowMs() + LEFTOVER_MS_MAX
  let isTold = false
  for (;;) {
    const said = await envoy.askReady()
    if (said !== 'silent' && said !== 'draining') return
    if (said === 'draining') {
      if (!isTold) log.warn('Envoy drains, and its pod stays: it is ended, to be started anew')
      isTold = true
      await envoy.end()
    }
    if (nowMs() >= endMs) return
    await pause(LOOK_EVERY_MS)
  }
}
