// Interface of a link cache shared by several processes. It never restores what a writer has
// changed: readers fill it only with a lease, and writers invalidate. Faults are StoreError.
import type { Target } from './decide-redirect.ts'

/** Result of a cache look-up. */
export type CacheResult =
  /** A target, which may have expired: the reader checks it. */
  | { readonly kind: 'hit'; readonly target: Target }
  /** A negative entry: the store has no link that redirects. */
  | { readonly kind: 'negative' }
  /** Not cached. With a lease, the caller may fill it. */
  | { readonly kind: 'unknown'; readonly lease: string | undefined }

/** A result of a majority read of the store. */
export interface CacheEntry {
  readonly code: string
  /** From the `lookUp` before the store was read. */
  readonly lease: string
  /** `undefined`: no link that redirects. */
  readonly target: Target | undefined
  /** Time of the store's reply, or later. */
  readonly nowMs: number
}

/** A shared cache of links. */
export interface LinkCache {
  /** Reads a code; if it is neither cached nor leased, the result has a lease for the caller. */
  lookUp(code: string): Promise<CacheResult>
  /**
   * Stores an entry if its lease is still valid: a target until it expires at most, an expired
   * one as long as a negative entry. Resolves to whether it was stored.
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

/** Lifetime of an entry; jittered by `random`, so that hits do not expire together. */
export function lifeMsOf({ target, nowMs }: CacheEntry, random: () => number): number {
  if (target === undefined) return NEGATIVE_MS
  const leftMs = target.expiresAtMs === null ? Infinity : target.expiresAtMs - nowMs
  if (leftMs <= 0) return NEGATIVE_MS
  return Math.ceil(Math.min(leftMs, HIT_MS * (1 - JITTER + 2 * JITTER * random())))
}
