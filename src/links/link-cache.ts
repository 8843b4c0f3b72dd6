// Interface of a link cache that several processes share. Stale reads of the store never fill it: a
// reader needs a lease (a token that allows one fill), and a writer invalidates the entry and its
// lease. Faults are StoreError.
import type { Target } from './decide-redirect.ts'

/** Result of a cache lookup. */
export type CacheResult =
  /** A target. The reader must check its expiry. */
  | { readonly kind: 'hit'; readonly target: Target }
  /** A negative entry: the store has no link that redirects. */
  | { readonly kind: 'negative' }
  /** Not cached. With a lease, the caller may fill the entry. */
  | { readonly kind: 'unknown'; readonly lease: string | undefined }

/** The result of a majority read of the store. */
export interface CacheEntry {
  readonly code: string
  /** From the `lookUp` before the read of the store. */
  readonly lease: string
  /** `undefined`: no link that redirects. */
  readonly target: Target | undefined
  /** Time of the store's reply, or later. */
  readonly nowMs: number
}

/** A shared cache of links. */
export interface LinkCache {
  /** Reads a code. If it is neither cached nor leased, the result has a lease for the caller. */
  lookUp(code: string): Promise<CacheResult>
  /**
   * Stores an entry if its lease is still valid; resolves to whether it was stored. A target is
   * kept at most until it expires. A target that has already expired is kept for NEGATIVE_MS.
   */
  fill(entry: CacheEntry): Promise<boolean>
  /** Removes the entry and any lease; resolves once the cache has confirmed it. */
  invalidate(code: string): Promise<void>
}

/** Lifetime of a lease, unless a writer invalidates the code earlier. */
export const LEASE_MS = 5000

/** Lifetime of a negative entry. */
export const NEGATIVE_MS = 60_000

const HIT_MS = 3_600_000
const JITTER = 0.1

/** Lifetime of an entry, with jitter from `random`, so that entries do not expire together. */
export function lifeMsOf({ target, nowMs }: CacheEntry, random: () => number): number {
  if (target === undefined) return NEGATIVE_MS
  const leftMs = target.expiresAtMs === null ? Infinity : target.expiresAtMs - nowMs
  if (leftMs <= 0) return NEGATIVE_MS
  return Math.ceil(Math.min(leftMs, HIT_MS * (1 - JITTER + 2 * JITTER * random())))
}
