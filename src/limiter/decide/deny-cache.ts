// Caches denials, so that the calls of a client that exceeds its limit do not load the store.
// Bounded; an entry expires after at most 1 s, because another process may refund hits.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'

const TTL_US_MAX = 1_000_000
/** Approximate memory of a key and its entry. */
const ENTRY_BYTES = 256

interface CachedDenial {
  readonly untilUs: number
  /** Number of denied hits: calls with at least as many hits are denied, too. */
  readonly hits: number
  /** `limit.requests` at the denial; it can vary, because limit overrides share counters. */
  readonly requests: number
  readonly remaining: number
  readonly resetAtUs: number
  readonly retryAtUs: number
  /** Offset of the store's clock from this process's clock. */
  readonly clockOffsetUs: number | undefined
}

/** A cache of denials. */
export interface DenyCache {
  /** The cached denial of these hits, or `undefined`. */
  find(update: CounterUpdate, nowUs: number): Decision | undefined
  /** Removes the entry of a counter after a refund. */
  invalidate(key: string): void
  /** Stores a denial. */
  store(update: CounterUpdate, decision: Decision, nowUs: number): void
  /** Removes all entries after a change of the rules. */
  clear(): void
}

const expired: CachedDenial = {
  ...{ untilUs: -Infinity, hits: 0, requests: 0, remaining: 0 },
  ...{ resetAtUs: 0, retryAtUs: 0, clockOffsetUs: undefined },
}

/** Creates an empty cache of about `bytesMax`. */
export function createDenyCache(bytesMax: number): DenyCache {
  const entries = new LRUCache<string, CachedDenial>({
    max: Math.max(1, Math.floor(bytesMax / ENTRY_BYTES)),
  })
  return {
    find(update, nowUs) {
      const denied = entries.get(update.key)
      if (denied === undefined || denied.untilUs <= nowUs || update.hits < denied.hits) return
      if (update.limit.requests > denied.requests) return
      return {
        admitted: false,
        // A lower limit on the same counter leaves less.
        remaining: update.limit.requests < denied.requests ? 0 : denied.remaining,
        over: update.hits,
        resetUs: denied.resetAtUs - nowUs,
        retryAfterUs: denied.retryAtUs - nowUs,
        next: undefined,
        expiresInUs: 0,
        ...(denied.clockOffsetUs !== undefined && { decidedAtUs: nowUs + denied.clockOffsetUs }),
      }
    },
    invalidate(key) {
      // Not deleted: lru-cache clears all its slots when it deletes the last entry.
      if (entries.has(key)) entries.set(key, expired)
    },
    store({ key, hits, limit: { requests } }, decision, nowUs) {
      if (hits <= 0) return
      const { remaining, resetUs, retryAfterUs, decidedAtUs } = decision
      const untilUs = nowUs + Math.min(TTL_US_MAX, retryAfterUs)
      const [resetAtUs, retryAtUs] = [nowUs + resetUs, nowUs + retryAfterUs]
      const clockOffsetUs = decidedAtUs === undefined ? undefined : decidedAtUs - nowUs
      const denial = { untilUs, hits, requests, remaining, resetAtUs, retryAtUs, clockOffsetUs }
      entries.set(key, denial)
    },
    clear() {
      entries.clear()
    },
  }
}
