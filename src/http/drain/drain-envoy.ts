// The drain of one Envoy: tells it once, then waits until nobody is served any more, or for so long
// and no longer. Stops no process: who asked for the drain does that.
import { type Clock, pause as wait, type Pause } from '../../process/deadline.ts'
import type { Log } from '../../process/log.ts'
import type { EnvoyAdmin, Served } from './envoy-admin.ts'

/**
 * How a drain ended. `drained`: no connection is left. `idle`: its time is over and connections are
 * left, but no request. `busy`: its time is over and requests are under way. `gone`: Envoy has
 * ended. `unknown`: its time is over, and Envoy did not say whom it serves.
 */
export type DrainOutcome = 'drained' | 'idle' | 'busy' | 'gone' | 'unknown'

/** The end of a drain. */
interface Drained {
  readonly outcome: DrainOutcome
  /** What Envoy last said that it serves. */
  readonly served: Served | undefined
  /** How long it took, in milliseconds. */
  readonly tookMs: number
}

/** The one drain of an Envoy. */
export interface Drain {
  /** Begins it; who asks again is told of the same one. */
  begin(): Promise<Drained>
  /** Resolves once Envoy has ended after its drain, or the drain's time is over. */
  untilGone(): Promise<void>
}

/** What a drain needs. */
export interface DrainDeps {
  readonly envoy: EnvoyAdmin
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

/** Makes the drain; nothing happens before it begins. */
export function createDrain(deps: DrainDeps): Drain {
  const { envoy, msMax, nowMs, pause = wait, log } = deps
  let running: Promise<Drained> | undefined
  let endMs = Infinity
  const begin = () => {
    if (running !== undefined) return running
    const begunMs = nowMs()
    endMs = begunMs + msMax
    log.info('draining Envoy')
    running = drain({ ...deps, pause, endMs }).then((end) => {
      const drained = { ...end, tookMs: Math.round(nowMs() - begunMs) }
      log.info(drained, 'the drain of Envoy has ended')
      return drained
    })
    return running
  }
  return {
    begin,
    async untilGone() {
      await begin()
      while ((await envoy.askReady()) !== 'gone' && nowMs() < endMs) await pause(LOOK_EVERY_MS)
    },
  }
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
