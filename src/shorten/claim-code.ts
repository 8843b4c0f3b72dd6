// Claims one code for one link: the only place that decides whether a claim was won, was lost, or
// could not be learnt. Every failure of the store is "unknown" until a serial read says more.
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import { type Clock, pause, type Pause } from '../process/deadline.ts'
import type { Metrics } from '../process/metrics.ts'
import { StoreError } from '../process/store-error.ts'

/** How a claim ended. `unknown`: it may be won or lost; the same `writerId` may try again. */
export type ClaimOutcome = 'claimed' | 'taken' | 'unknown'

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
  const wait = deps.pause ?? pause
  let failures = 0
  const settle = (writerId: string): ClaimOutcome => {
    if (failures > 0) deps.metrics.claims.inc({ outcome: 'unknown-resolved' })
    const outcome = writerId === link.writerId ? 'claimed' : 'taken'
    deps.metrics.claims.inc({ outcome })
    return outcome
  }
  do {
    const written = await answerOf(deps.links.insertIfAbsent(link))
    if (written !== 'failed') return settle(written)
    failures++
    let seen = await answerOf(deps.links.readSerial(link.code))
    while (seen === 'failed' && deps.nowMs() < deadlineMs) {
      await wait(backOffMs(failures++))
      seen = await answerOf(deps.links.readSerial(link.code))
    }
    if (seen !== 'failed' && seen !== undefined) return settle(seen.writerId)
    // Absent, or never learnt: the write may still land, so only the same writer may try again.
    if (seen === undefined) await wait(backOffMs(failures))
  } while (deps.nowMs() < deadlineMs)
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

/** The pause after a first failure; it doubles with each. */
export const PAUSE_MS = 10
const PAUSE_MS_MAX = 500

function backOffMs(failures: number): number {
  return Math.min(PAUSE_MS * 2 ** Math.min(failures, 10), PAUSE_MS_MAX)
}
