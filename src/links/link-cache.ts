// What a cache of links shared by several processes must do, so that it never brings back what a
// writer has changed: readers fill it by a lease only, and writers forget. Faults are StoreError.
import type { Target } from './decide-redirect.ts'

/** What the cache says of a code. */
export type CacheAnswer =
  /** What may be followed until it expires. */
  | { readonly kind: 'hit'; readonly target: Target }
  /** "There is nothing that can be followed", as the store said lately. */
  | { readonly kind: 'negative' }
  /** Nothing is remembered. With a lease, whoever asked may fill it. */
  | { readonly kind: 'unknown'; readonly lease: string | undefined }

/** A shared cache of links. */
export interface LinkCache {
  /** Looks; where nothing is remembered and nobody holds a lease, puts one for the caller. */
  look(code: string): Promise<CacheAnswer>
  /**
   * Stores what a majority of the store said, if the lease still stands: a target until it expires
   * at most, or "there is nothing". Resolves to whether it was stored.
   */
  fill(entry: {
    code: string
    lease: string
    target: Target | undefined
    nowMs: number
  }): Promise<boolean>
  /** Removes what is remembered and any lease; resolves once the cache has confirmed it. */
  forget(code: string): Promise<void>
}
