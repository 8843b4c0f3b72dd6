// Drains one Envoy: starts its drain, then waits until no connection is left or the deadline has
// passed. It does not stop Envoy: the kubelet does so after this process has exited.
import { type Clock, pause as realPause, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin, ListenerLoad } from './envoy.ts'

/**
 * The outcome of a drain. `drained`: no connection is left. At the deadline: `idle`: connections
 * are left, but no request is in flight; `busy`: requests are in flight; `unknown`: Envoy did not
 * report its load. `exited`: Envoy has exited.
 */
type DrainOutcome = 'drained' | 'idle' | 'busy' | 'exited' | 'unknown'

/** The result of a drain. */
interface DrainResult {
  readonly outcome: DrainOutcome
  /** The load that Envoy reported last. */
  readonly served: ListenerLoad | undefined
  /** Duration in milliseconds. */
  readonly tookMs: number
}

/** Dependencies of a drain. */
export interface DrainDeps {
  readonly envoy: Pick<EnvoyAdmin, 'startDrain' | 'readListenerLoad'>
  /** Maximum duration in milliseconds; then the drain completes even with open connections. */
  readonly msMax: number
  /** Envoy counts as drained after this time, in ms, without an open or a new connection. */
  readonly quietMs: number
  readonly nowMs: Clock
  /** @default waits in real time */
  readonly pause?: Pause
  readonly log: Log
}

const POLL_EVERY_MS = 100

/** Drains Envoy; resolves once Envoy has drained or exited, or at the deadline. */
export async function drainEnvoy(deps: DrainDeps): Promise<DrainResult> {
  const { nowMs, pause = realPause, log } = deps
  const startMs = nowMs()
  log.info('draining Envoy')
  const { outcome, served } = await drain({ ...deps, pause, deadlineMs: startMs + deps.msMax })
  const result = { outcome, served, tookMs: Math.round(nowMs() - startMs) }
  const isClean = outcome !== 'busy' && outcome !== 'unknown'
  log[isClean ? 'info' : 'warn'](result, 'drain of Envoy completed')
  return result
}

async function drain(
  options: DrainDeps & { readonly pause: Pause; readonly deadlineMs: number },
): Promise<Omit<DrainResult, 'tookMs'>> {
  const { envoy, quietMs, nowMs, pause, deadlineMs } = options
  let hasStarted = false
  const poll = async () => {
    // Retried until Envoy confirms it, because it is idempotent.
    const start = hasStarted ? 'started' : await envoy.startDrain()
    if (start !== 'started') return start
    hasStarted = true
    return envoy.readListenerLoad()
  }
  let served: ListenerLoad | undefined
  let quietSinceMs = nowMs()
  for (;;) {
    const load = await poll()
    if (load === 'exited') return { outcome: 'exited', served }
    if (typeof load === 'object') {
      // Until load balancers have detected the drain, Envoy still serves new connections.
      if (load.connections > 0 || load.accepted !== served?.accepted) quietSinceMs = nowMs()
      served = load
      if (nowMs() - quietSinceMs >= quietMs && load.connections === 0) {
        return { outcome: 'drained', served }
      }
    }
    if (nowMs() >= deadlineMs) return { outcome: outcomeAtDeadline(served), served }
    await pause(POLL_EVERY_MS)
  }
}

function outcomeAtDeadline(served: ListenerLoad | undefined): DrainOutcome {
  if (served === undefined) return 'unknown'
  if (served.requests > 0) return 'busy'
  return served.connections > 0 ? 'idle' : 'drained'
}
