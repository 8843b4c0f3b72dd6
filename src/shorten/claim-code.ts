// Claims one code for one link: the only place that decides whether a claim was won, was lost, was
// not done, or could not be learnt. A failure of the store is "unknown" until a serial read says
// more, unless the store itself says that nothing was done.
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import { type Clock, pause, type Pause } from '../process/deadline.ts'
import type { Metrics } from '../process/metrics.ts'
import { type FailedOutcome, StoreError } from '../process/store-error.ts'

/** How a claim ended. Unless it is `claimed` or `taken` the same `writerId` may try again. */
export type ClaimOutcome = 'claimed' | 'taken' | FailedOutcome

/** What claiming needs. */
export interface ClaimDeps {
  readonly links: Pick<LinkStore, 'insertIfAbsent' | 'readSerial'>
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'claims'>
  /** How to wait before a repeat; tests, whose clock is their own, bring another. */
  readonly pause?: Pause
}

/**
 * Stores `link` if its code is free. Won or lost is told by the record's writer, never by the
 * store's word alone: the driver, or an earlier try, may already have won. Ends by `deadlineMs`,
 * give or take one call of the store.
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
    deps.metrics.claims.inc({ outcome: error.outcome })
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
  const wait = deps.pause ?? pause
  let failures = 1
  const resolved = (writerId: string): ClaimOutcome => {
    deps.metrics.claims.inc({ outcome: 'unknown-resolved' })
    return settle(deps, link, writerId)
  }
  for (;;) {
    let seen = await answerOf(deps.links.readSerial(link.code))
    while (seen === 'failed' && deps.nowMs() < deadlineMs) {
      await wait(backOffMs(failures++))
      seen = await answerOf(deps.links.readSerial(link.code))
    }
    if (seen !== 'failed' && seen !== undefined) return resolved(seen.writerId)
    // Absent, or never learnt: the write may still land, so only the same writer may try again.
    if (seen === undefined) await wait(backOffMs(failures))
    if (deps.nowMs() >= deadlineMs) break
    const written = await answerOf(deps.links.insertIfAbsent(link))
    if (written !== 'failed') return resolved(written)
    failures++
  }
  deps.metrics.claims.inc({ outcome: 'unknown' })
  return 'unknown'
}

/** What a store answered, or that it did not. */
export async function answerOf<T>(call: Promise<T>): Promise<T | 'failed'> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StoreError) return 'failed'
    throw error
  }
}

/** What a store answered, or what is known of the write that it did not answer. */
export async function outcomeOf<T>(call: Promise<T>): Promise<T | FailedOutcome> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StoreError) return error.outcome
    throw error
  }
}

/** The pause after a first failure; it doubles with each. */
export const PAUSE_MS = 10
const PAUSE_MS_MAX = 500

function backOffMs(failures: number): number {
  return Math.min(PAUSE_MS * 2 ** Math.min(failures, 10), PAUSE_MS_MAX)
}
