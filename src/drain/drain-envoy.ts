// The drain of one Envoy: starts it, then waits until no connection is left or the deadline has
// passed. Stops no process: the kubelet stops Envoy after this one has exited.
import { type Clock, pause as wait, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin, ServedLoad } from './envoy.ts'

/**
 * The outcome of a drain. `drained`: no connection is left. At the deadline: `idle`: connections
 * are left, but no request is in flight; `busy`: requests are in flight; `unknown`: Envoy did not
 * report its load. `exited`: Envoy has exited.
 */
type DrainOutcome = 'drained' | 'idle' | 'busy' | 'exited' | 'unknown'

/** A completed drain. */
interface DrainResult {
  readonly outcome: DrainOutcome
  /** The load that Envoy reported last. */
  readonly served: ServedLoad | undefined
  /** Duration in milliseconds. */
  readonly tookMs: number
}

/** Dependencies of a drain. */
export interface DrainDeps {
  readonly envoy: Pick<EnvoyAdmin, 'startDrain' | 'readServedLoad'>
  /** Time after which the drain stops, even with open connections. */
  readonly msMax: number
  /** How long no new connection may arrive before Envoy counts as drained. */
  readonly quietMs: number
  readonly nowMs: Clock
  /** @default waits in real time */
  readonly pause?: Pause
  readonly log: Log
}

const POLL_EVERY_MS = 100

/** Drains Envoy; resolves once it has drained or stopped, or after `msMax`. */
export async function drainEnvoy(deps: DrainDeps): Promise<DrainResult> {
  const { nowMs, pause = wait, log } = deps
  const startMs = nowMs()
  log.info('draining Envoy')
  const result = await drain({ ...deps, pause, endMs: startMs + deps.msMax })
  const drained = { ...result, tookMs: Math.round(nowMs() - startMs) }
  const isComplete = result.outcome !== 'busy' && result.outcome !== 'unknown'
  log[isComplete ? 'info' : 'warn'](drained, 'drain of Envoy completed')
  return drained
}

async function drain(
  options: DrainDeps & { readonly pause: Pause; readonly endMs: number },
): Promise<Omit<DrainResult, 'tookMs'>> {
  const { envoy, quietMs, nowMs, pause, endMs } = options
  let hasStarted = false
  const poll = async () => {
    // Retried until Envoy confirms it: both commands are idempotent.
    const start = hasStarted ? 'started' : await envoy.startDrain()
    if (start !== 'started') return start
    hasStarted = true
    return envoy.readServedLoad()
  }
  let served: ServedLoad | undefined
  let quietSinceMs = nowMs()
  for (;;) {
    const load = await poll()
    if (load === 'exited') return { outcome: 'exited', served }
    if (typeof load === 'object') {
      // Load balancers may not have detected it yet: new connections still arrive, and are served.
      if (load.connections > 0 || load.accepted !== served?.accepted) quietSinceMs = nowMs()
      served = load
      if (nowMs() - quietSinceMs >= quietMs && load.connections === 0) {
        return { outcome: 'drained', served }
      }
    }
    if (nowMs() >= endMs) return { outcome: outcomeAtDeadline(served), served }
    await pause(POLL_EVERY_MS)
  }
}

function outcomeAtDeadline(served: ServedLoad | undefined): DrainOutcome {
  if (served === undefined) return 'unknown'
  if (served.requests > 0) return 'busy'
  return served.connections > 0 ? 'idle' : 'drained'
}
