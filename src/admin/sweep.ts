// Deletes what ended long ago, in small steps, from stores that do not do so themselves. Only
// housekeeping: whether a link is followed is decided by its expiry on each read.
import { QUARANTINE_MS } from '../links/expiry.ts'
import type { SweptStore } from '../links/link-store.ts'
import { type Clock, pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** What sweeping needs. */
export interface SweepDeps {
  readonly links: SweptStore
  readonly intents: SweptStore
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'linksPurged'>
  readonly log: Pick<Log, 'info'>
  readonly signal: AbortSignal
}

/** Records deleted in one step, and the pause after it, in which other writes go first. */
const STEP_MAX = 500
const STEP_PAUSE_MS = 10
/** One sweep deletes this many records at most; the next goes on. */
const STEPS_MAX = 20_000

/** Deletes links that expired more than 31 days ago, and intents past their day. */
export async function sweep(deps: SweepDeps): Promise<void> {
  const links = await sweepStore(deps, deps.links, deps.nowMs() - QUARANTINE_MS)
  const intents = await sweepStore(deps, deps.intents, deps.nowMs())
  deps.metrics.linksPurged.inc(links)
  if (links + intents > 0) deps.log.info({ links, intents }, 'deleted what ended long ago')
}

async function sweepStore(deps: SweepDeps, store: SweptStore, beforeMs: number): Promise<number> {
  let deleted = 0
  for (let step = 0; step < STEPS_MAX && !deps.signal.aborted; step++) {
    const count = await store.deleteEnded({ beforeMs, max: STEP_MAX })
    deleted += count
    if (count < STEP_MAX) break
    await pause(STEP_PAUSE_MS, deps.signal)
  }
  return deleted
}
