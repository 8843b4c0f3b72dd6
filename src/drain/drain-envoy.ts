// The drain of one Envoy: starts it, then waits until no connection is left or the deadline has
// passed. Stops no process: the kubelet stops Envoy after this one has exited.
import { type Clock, pause as wait, type Pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { EnvoyAdmin, Served } from './envoy.ts'

/**
 * How a drain ended. `drained`: no connection is left. `idle`: its time is over and connections are
 * left, but no request. `busy`: its time is over and requests are under way. `gone`: Envoy has
 * ended. `unknown`: its time is over, and Envoy did not say whom it serves.
 */
type DrainOutcome = 'drained' | 'idle' | 'busy' | 'gone' | 'unknown'

/** The end of a drain. */
interface Drained {
  readonly outcome: DrainOutcome
  /** What Envoy last said that it serves. */
  readonly served: Served | undefined
  /** How long it took, in milliseconds. */
  readonly tookMs: number
}

/** What a drain needs. */
export interface DrainDeps {
  readonly envoy: Pick<EnvoyAdmin, 'beginDrain' | 'readServed'>
  /** When it is over, whatever is left. */
  readonly msMax: number
  /** How long no new connection may have come before it is over. */
  readonly quietMs: number
  readonly nowMs: Clock
  /** @default waits by the clock of the process */
  readonly pause?: Pause
  readonly log: Log
}

const LOOK_EVERY_MS = 100

/** Drains Envoy; resolves once it has drained or stopped, or after `msMax`. */
export async function drainEnvoy(deps: DrainDeps): Promise<Drained> {
  const { nowMs, pause = wait, log } = deps
  const startMs = nowMs()
  log.info('draining Envoy')
  const end = await drain({ ...deps, pause, endMs: startMs + deps.msMax })
  const drained = { ...end, tookMs: Math.round(nowMs() - startMs) }
  const isComplete = end.outcome !== 'busy' && end.outcome !== 'unknown'
  log[isComplete ? 'info' : 'warn'](drained, 'drain of Envoy completed')
  return drained
}

async function drain(
  given: DrainDeps & { readonly pause: Pause; readonly endMs: number },
): Promise<Omit<Drained, 'tookMs'>> {
  const { envoy, quietMs, nowMs, pause, endMs } = given
  let isTold = false
  const look = async () => {
    // Told again until it says that it has heard: both orders may be given twice.
    const told = isTold ? 'begun' : await envoy.beginDrain()
    if (told !== 'begun') return told
    isTold = true
    return envoy.readServed()
  }
  let served: Served | undefined
  let quietSinceMs = nowMs()
  for (;;) {
    const seen = await look()
    if (seen === 'gone') return { outcome: 'gone', served }
    if (typeof seen === 'object') {
      // Whoever balances load may not know yet: new connections still come, and are served.
      if (seen.connections > 0 || seen.accepted !== served?.accepted) quietSinceMs = nowMs()
      served = seen
      if (nowMs() - quietSinceMs >= quietMs && seen.connections === 0) {
        return { outcome: 'drained', served }
      }
    }
    if (nowMs() >= endMs) return { outcome: outcomeOf(served), served }
    await pause(LOOK_EVERY_MS)
  }
}

function outcomeOf(served: Served | undefined): DrainOutcome {
  if (served === undefined) return 'unknown'
  if (served.requests > 0) return 'busy'
  return served.connections > 0 ? 'idle' : 'drained'
}
