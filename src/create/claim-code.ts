// Claims one code for one link: the only place that decides whether a claim succeeded, failed, was
// not done, or is unknown. After a failure of the store the result is unknown until a serial read,
// unless the store reports that it did nothing.
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

/** Result of a claim. Unless it is `claimed` or `taken`, the same `writerId` may retry. */
export type ClaimOutcome = 'claimed' | 'taken' | FailedOutcome

/** Dependencies of a claim. */
export interface ClaimDeps extends RetryDeps {
  readonly links: Pick<LinkStore, 'insertIfAbsent' | 'readSerial'>
  readonly monotonicMs: Clock
  readonly metrics: Pick<Metrics, 'claims'>
}

/**
 * Stores `link` if its code is free. The record's writer decides whether the claim succeeded, not
 * the store's response alone: the driver, or an earlier attempt, may have stored it. Completes by
 * `deadlineMs` of the monotonic clock, plus at most one store call.
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
    // Nothing was written. An immediate retry would not help a store that rejects work.
    deps.metrics.claims.inc({ result: error.outcome })
    return error.outcome
  }
}

/** `claimed` if the writer of the record is that of `link`, otherwise `taken`. */
function settle(deps: ClaimDeps, link: Link, writerId: string): ClaimOutcome {
  const outcome = writerId === link.writerId ? 'claimed' : 'taken'
  deps.metrics.claims.labels(outcome).inc()
  return outcome
}

/** Resolves a claim whose first write failed: reads back, and retries the write if allowed. */
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
    const stored = await retries.run(() => deps.links.readSerial(link.code))
    if (stored === 'failed') break
    if (stored !== undefined) return resolved(stored.writerId)
    // Absent, but the write may still take effect: only the same writer may retry.
    if (!(await retries.wait())) break
    const written = await resultOrOutcome(deps.links.insertIfAbsent(link))
    if (written !== 'unknown' && written !== 'not-done') return resolved(written)
  }
  deps.metrics.claims.inc({ result: 'unknown' })
  return 'unknown'
}
