// What a cache of links shared by several processes must do, so that it never brings back what a
// writer has changed: readers fill it by a permit only, and writers forget. Faults are StoreError.
import type { Target } from './decide-redirect.ts'

/** What the cache says of a code. */
export type CacheAnswer =
  /** A target, which may have expired: who reads judges it. */
  | { readonly kind: 'hit'; readonly target: Target }
  /** "There is nothing that can be followed", as the store said lately. */
  | { readonly kind: 'negative' }
  /** Nothing is remembered. With a permit, whoever asked may fill it. */
  | { readonly kind: 'unknown'; readonly permit: string | undefined }

/** What a majority of the store said of a code. */
export interface CacheEntry {
  readonly code: string
  /** What `look` gave before the store was asked. */
  readonly permit: string
  /** `undefined`: there is nothing that can be followed. */
  readonly target: Target | undefined
  /** When the store said so, or later. */
  readonly nowMs: number
}

/** A shared cache of links. */
export interface LinkCache {
  /** Looks; where nothing is remembered and nobody has a permit, leaves one for the caller. */
  look(code: string): Promise<CacheAnswer>
  /**
   * Remembers an entry if its permit still stands: a target until it expires at most, and one that
   * has expired as long as "there is nothing". Resolves to whether it was remembered.
   */
  fill(entry: CacheEntry): Promise<boolean>
  /** Removes what is remembered and any permit; resolves once the cache has confirmed it. */
  forget(code: string): Promise<void>
}

/** How long a permit stands, unless a writer forgets the code before. */
export const PERMIT_MS = 5000

/** How long "there is nothing" is remembered. */
export const NEGATIVE_MS = 60_000

const HIT_MS = 3_600_000
const JITTER = 0.1

/** How long an entry is remembered; jittered by `random`, so that hits do not end together. */
export function lifeMsOf({ target, nowMs }: CacheEntry, random: () => number): number {
  if (target === undefined) return NEGATIVE_MS
  const leftMs = target.expiresAtMs === null ? Infinity : target.expiresAtMs - nowMs
  if (leftMs <= 0) return NEGATIVE_MS
  return Math.ceil(Math.min(leftMs, HIT_MS * (1 - JITTER + 2 * JITTER * random())))
}
