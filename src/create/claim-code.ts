// Claims one code for one link: the only place that decides whether a claim was won, was lost, was
// not done, or could not be learnt. A failure of the store is "unknown" until a serial read says
// more, unless the store itself says that nothing was done.
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type FailedOutcome, StoreError } from '../resilience/store-error.ts'
import {
  resultOrOutcome,
  type RetryDeps,
  createRetries,
} from '../resilience/retry-until-deadline.ts'

/** How a claim ended. Unless it is `claimed` or `taken` the same `writerId` may try again. */
export type ClaimOutcome = 'claimed' | 'taken' | FailedOutcome

/** What claiming needs. */
export interface ClaimDeps extends RetryDeps {
  readonly links: Pick<LinkStore, 'insertIfAbsent' | 'readSerial'>
  readonly monotonicMs: Clock
  readonly metrics: Pick<Metrics, 'claims'>
}

/**
 * Stores `link` if its code is free. Won or lost is told by the record's writer, never by the
 * store's word alone: the driver, or an earlier try, may already have won. Ends by `deadlineMs` of
 * the monotonic clock, give or take one call of the store.
 */
export async function claimCode(
  deps: ClaimDeps,
  link: Link,
  deadlineMs: number,
): Promise<ClaimOutcome> {
  try {
    return settle(deps, link, await deps.links.insertIfAbsent(link))
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (error.outcome === 'unknown') return resolveClaim(deps, link, deadlineMs)
    // Nothing was written. A store that refuses work is not helped by being asked again at once.
    deps.metrics.claims.inc({ result: error.outcome })
    return error.outcome
  }
}

/** The record is `writerId`'s: won or lost. */
function settle(deps: ClaimDeps, link: Link, writerId: string): ClaimOutcome {
  const outcome = writerId === link.writerId ? 'claimed' : 'taken'
  deps.metrics.claims.labels(outcome).inc()
  return outcome
}

/** Learns what became of a claim whose first write failed: reads, and writes again where it may. */
async function resolveClaim(
  deps: ClaimDeps,
  link: Link,
  deadlineMs: number,
): Promise<ClaimOutcome> {
  const retries = createRetries(deadlineMs, deps)
  const resolved = (writerId: string): ClaimOutcome => {
    deps.metrics.claims.inc({ result: 'unknown-resolved' })
    return settle(deps, link, writerId)
  }
  for (;;) {
    const seen = await retries.run(() => deps.links.readSerial(link.code))
    if (seen === 'failed') break
    if (seen !== undefined) return resolved(seen.writerId)
    // Absent, but the write may still land: only the same writer may retry.
    if (!(await retries.wait())) break
    const written = await resultOrOutcome(deps.links.insertIfAbsent(link))
    if (written !== 'unknown' && written !== 'not-done') return resolved(written)
  }
  deps.metrics.claims.inc({ result: 'unknown' })
  return 'unknown'
}
