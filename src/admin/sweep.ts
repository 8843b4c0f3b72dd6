// Deletes expired records, in small steps, from stores without native expiry. It only frees space:
// each read checks whether the link has expired.
import { QUARANTINE_MS } from '../links/expiry.ts'
import type { SweptStore } from '../links/link-store.ts'
import { type Clock, pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Dependencies of a sweep. */
export interface SweepDeps {
  readonly links: SweptStore
  readonly intents: SweptStore
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'linksPurged'>
  readonly log: Pick<Log, 'info'>
  readonly signal: AbortSignal
}

/** Records deleted per step, and the pause after a step that lets other writes proceed. */
const STEP_MAX = 500
const STEP_PAUSE_MS = 10
/** Steps per sweep; the next sweep continues. */
const STEPS_MAX = 20_000

/** Deletes links that expired more than QUARANTINE_MS ago, and expired intents. */
export async function sweep(deps: SweepDeps): Promise<void> {
  const links = await sweepStore(deps, deps.links, deps.nowMs() - QUARANTINE_MS)
  const intents = await sweepStore(deps, deps.intents, deps.nowMs())
  deps.metrics.linksPurged.inc(links)
  if (links + intents > 0) deps.log.info({ links, intents }, 'expired links deleted')
}

async function sweepStore(deps: SweepDeps, store: SweptStore, beforeMs: number): Promise<number> {
  let deleted = 0
  for (let step = 0; step < STEPS_MAX && !deps.signal.aborted; step++) {
    const count = await store.deleteExpired({ beforeMs, max: STEP_MAX })
    deleted += count
    if (count < STEP_MAX) break
    await pause(STEP_PAUSE_MS, deps.signal)
  }
  return deleted
}
