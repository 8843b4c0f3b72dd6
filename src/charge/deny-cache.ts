// What this process was told is over its limit, so that a caller that goes on asking costs the
// store nothing. Bounded; each memory lives a second at most, as hits may be given back elsewhere.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../limits/algorithm.ts'
import type { CounterCharge } from '../limits/counter-store.ts'

const LIFE_US_MAX = 1_000_000
/** What a counter's key and its entry take, roughly. */
const ENTRY_BYTES = 256

interface Denied {
  readonly untilUs: number
  /** Hits that were denied: as many or more are denied too. */
  readonly cost: number
  readonly resetAtUs: number
  readonly retryAtUs: number
}

/** A memory of what was denied. */
export interface DenyCache {
  /** The decision for a charge that needs no store, or `undefined`. */
  find(charge: CounterCharge, nowUs: number): Decision | undefined
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
      return {
        admitted: false,
        remaining: 0,
        over: charge.cost,
        resetUs: denied.resetAtUs - nowUs,
        retryAfterUs: denied.retryAtUs - nowUs,
        next: undefined,
        expiresInUs: 0,
      }
    },
    note({ key, cost }, { resetUs, retryAfterUs }, nowUs) {
      if (cost <= 0) return
      const untilUs = nowUs + Math.min(LIFE_US_MAX, retryAfterUs)
      const [resetAtUs, retryAtUs] = [nowUs + resetUs, nowUs + retryAfterUs]
      entries.set(key, { untilUs, cost, resetAtUs, retryAtUs })
    },
    clear() {
      entries.clear()
    },
  }
}
