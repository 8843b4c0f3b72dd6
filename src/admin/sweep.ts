// Deletes expired records, in small steps, from stores without native expiry. A sweep only frees
// space: each read checks whether the link has expired.
import { QUARANTINE_MS } from '../links/expiry.ts'
import type { SweptStore } from '../links/link-store.ts'
import { type Clock, pause } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Dependencies of a sweep. */
export interface SweepDeps {
  readonly links: SweptStore
  readonly intents: SweptStore
  readonly reports: SweptStore
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'linksPurged'>
  readonly log: Pick<Log, 'info'>
  readonly signal: AbortSignal
}

/** Records deleted per step, and the pause after each step, in which other writes proceed. */
const STEP_MAX = 500
const STEP_PAUSE_MS = 10
/** Steps per store in a sweep; the next sweep continues. */
const STEPS_MAX = 20_000

/** Deletes expired intents and reports, and links that expired more than QUARANTINE_MS ago. */
export async function sweep(deps: SweepDeps): Promise<void> {
  const countLinks = (count: number) => {
    deps.metrics.linksPurged.inc(count) // in each step, because a later one may fail
  }
  const links = await sweepStore(deps, {
    store: deps.links,
    beforeMs: deps.nowMs() - QUARANTINE_MS,
    onDeleted: countLinks,
  })
  const intents = await sweepStore(deps, { store: deps.intents, beforeMs: deps.nowMs() })
  const reports = await sweepStore(deps, { store: deps.reports, beforeMs: deps.nowMs() })
  if (links + intents + reports > 0)
    deps.log.info({ links, intents, reports }, 'expired records deleted')
}

async function sweepStore(
  deps: SweepDeps,
  given: {
    readonly store: SweptStore
    readonly beforeMs: number
    readonly onDeleted?: (count: number) => void
  },
): Promise<number> {
  const { store, beforeMs, onDeleted } = given
  let deleted = 0
  for (let step = 0; step < STEPS_MAX && !deps.signal.aborted; step++) {
    const count = await store.deleteExpired({ beforeMs, max: STEP_MAX })
    deleted += count
    onDeleted?.(count)
    if (count < STEP_MAX) break
    await pause(STEP_PAUSE_MS, deps.signal)
  }
  return deleted
}
