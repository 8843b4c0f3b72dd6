// Claims one code for one link: a conditional insert that reserves the code. After a failure of the
// store the outcome is unknown until a serial read, unless the store reports that the insert had no
// effect. Only this file decides the outcome of a claim. A create that is repeated with its
// Idempotency-Key after its link has expired claims nothing (`replayExpired` in create-link.ts).
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

/**
 * Result of a claim. `claimed` and `taken` are final; after any other result, the claim may be
 * retried with the same `writerId`.
 */
export type ClaimOutcome = 'claimed' | 'taken' | FailedOutcome

/** Dependencies of a claim. */
export interface ClaimDeps extends RetryDeps {
  readonly links: Pick<LinkStore, 'insertIfAbsent' | 'readSerial'>
  readonly monotonicMs: Clock
  readonly metrics: Pick<Metrics, 'claims'>
}

/**
 * Stores `link` if its code is free. The claim succeeded if the stored record has the `writerId` of
 * this write, even if the store reports that the code is taken: a retry by the driver or an earlier
 * attempt may have stored it. Retries stop at `deadlineMs` of the monotonic clock; the store call
 * that is then in flight completes, and may be followed by one read.
 */
export async function claimCode(
  deps: ClaimDeps,
  link: Link,
  deadlineMs: number,
): Promise<ClaimOutcome> {
  try {
    return countOutcome(deps, link, await deps.links.insertIfAbsent(link))
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (error.outcome === 'unknown') return resolveClaim(deps, link, deadlineMs)
    // Nothing was written, and a store that rejects work would reject an immediate retry.
    deps.metrics.claims.inc({ result: error.outcome })
    return error.outcome
  }
}

/** Counts and returns `claimed` if the stored record is that of `link`, otherwise `taken`. */
function countOutcome(deps: ClaimDeps, link: Link, writerId: string): ClaimOutcome {
  const outcome = writerId === link.writerId ? 'claimed' : 'taken'
  deps.metrics.claims.labels(outcome).inc()
  return outcome
}

/** Resolves a claim of unknown outcome: reads the record, and retries the write if it is absent. */
async function resolveClaim(
  deps: ClaimDeps,
  link: Link,
  deadlineMs: number,
): Promise<ClaimOutcome> {
  const retries = createRetries(deadlineMs, deps)
  const resolved = (writerId: string): ClaimOutcome => {
    deps.metrics.claims.inc({ result: 'unknown-resolved' }) // in addition to the outcome
    return countOutcome(deps, link, writerId)
  }
  for (;;) {
    const stored = await retries.run(() => deps.links.readSerial(link.code))
    if (stored === 'failed') break
    if (stored !== undefined) return resolved(stored.writerId)
    // The first write may still take effect, so the retry must use the same `writerId`.
    if (!(await retries.wait())) break
    const storedId = await resultOrOutcome(deps.links.insertIfAbsent(link))
    if (storedId !== 'unknown' && storedId !== 'not-done') return resolved(storedId)
  }
  deps.metrics.claims.inc({ result: 'unknown' })
  return 'unknown'
}
