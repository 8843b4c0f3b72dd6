// What this process was told is over its limit, so that a caller that goes on asking costs the
// store nothing. Bounded; each memory lives a second at most, as hits may be given back elsewhere.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../../limits/algorithm.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'

const LIFE_US_MAX = 1_000_000
/** What a counter's key and its entry take, roughly. */
const ENTRY_BYTES = 256

interface Denied {
  readonly untilUs: number
  /** Hits that were denied: as many or more are denied too. */
  readonly cost: number
  /** The limit that denied them; callers may bring another for the same counter. */
  readonly requests: number
  readonly resetAtUs: number
  readonly retryAtUs: number
  /** How far the store's clock is ahead of this process's. */
  readonly aheadUs: number | undefined
}

/** A memory of what was denied. */
export interface DenyCache {
  /** The decision for a charge that needs no store, or `undefined`. */
  find(charge: CounterCharge, nowUs: number): Decision | undefined
  /** Drops what is remembered of a counter: hits are refunded to it. */
  invalidate(key: string): void
  /** Remembers a denial. */
  note(charge: CounterCharge, decision: Decision, nowUs: number): void
  /** Forgets all: the rules have changed. */
  clear(): void
}

/** Makes an empty memory of about `bytesMax`. */
export function createDenyCache(bytesMax: number): DenyCache {
  const entries = new LRUCache<string, Denied>({
    max: Math.max(1, Math.floor(bytesMax / ENTRY_BYTES)),
  })
  return {
    find(charge, nowUs) {
      const denied = entries.get(charge.key)
      if (denied === undefined || denied.untilUs <= nowUs || charge.cost < denied.cost) return
      if (charge.limit.requests > denied.requests) return
      return {
        admitted: false,
        remaining: 0,
        over: charge.cost,
        resetUs: denied.resetAtUs - nowUs,
        retryAfterUs: denied.retryAtUs - nowUs,
        next: undefined,
        expiresInUs: 0,
        ...(denied.aheadUs !== undefined && { decidedAtUs: nowUs + denied.aheadUs }),
      }
    },
    invalidate(key) {
      entries.delete(key)
    },
    note({ key, cost, limit: { requests } }, { resetUs, retryAfterUs, decidedAtUs }, nowUs) {
      if (cost <= 0) return
      const untilUs = nowUs + Math.min(LIFE_US_MAX, retryAfterUs)
      const [resetAtUs, retryAtUs] = [nowUs + resetUs, nowUs + retryAfterUs]
      const aheadUs = decidedAtUs === undefined ? undefined : decidedAtUs - nowUs
      entries.set(key, { untilUs, cost, requests, resetAtUs, retryAtUs, aheadUs })
    },
    clear() {
      entries.clear()
    },
  }
}
