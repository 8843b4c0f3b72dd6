// Read-through with fallback behind the in-process cache: the shared cache, a majority of the store
// and, if both are unavailable, any one replica. Decides what the shared cache may store.
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheAnswer, CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** The tiers of a look-up. */
export interface Tiers {
  readonly links: Pick<LinkStore, 'find'> & Partial<ReplicatedStore>
  /** Shared by several processes; absent if there is only one. */
  readonly cache?: Pick<LinkCache, 'look' | 'fill'> | undefined
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'lookups' | 'linkCacheFills'>
}

/** Neither the cache nor any replica of the store returned a usable result. */
export class AllTiersUnavailable extends StoreError {}

/**
 * Looks a code up once. `isCurrent` returns, after the store's reply, whether this process has not
 * changed the record meanwhile: else the cache is not filled. Rejects with StoreError if no tier
 * returned a reliable result.
 */
export type ReadTiers = (code: string, isCurrent: () => boolean) => Promise<Target | undefined>

/** Creates the look-up. */
export function createReadTiers(tiers: Tiers): ReadTiers {
  const { cache, nowMs } = tiers
  const store = createCountedReads(tiers)
  if (cache === undefined) {
    return (code) =>
      store.find(code).catch((error: unknown) => store.findOnReplica(code, error, true))
  }
  const looks = createLookCounts(tiers)
  const fill = createCountedFill(cache, tiers)
  return async (code, isCurrent) => {
    let seen: CacheAnswer | undefined
    try {
      seen = await cache.look(code)
      looks.note(seen)
    } catch (error) {
      looks.noteFailure(error)
    }
    if (seen?.kind === 'hit') return seen.target
    if (seen?.kind === 'negative') return undefined
    let target: Target | undefined
    try {
      target = await store.find(code)
    } catch (error) {
      return store.findOnReplica(code, error, seen === undefined)
    }
    const lease = seen?.lease
    if (lease !== undefined && isCurrent()) fill({ code, lease, target, nowMs: nowMs() })
    return target
  }
}

function createCountedReads({ links, metrics: { lookups } }: Tiers) {
  const counts = countsOf(lookups)
  const [inStore, onReplica] = [counts('store'), counts('replica')]
  return {
    /** Reads from a majority. */
    async find(code: string): Promise<Target | undefined> {
      try {
        const target = targetOf(await links.find(code))
        inStore.count(target)
        return target
      } catch (error) {
        inStore.errors.inc()
        throw error
      }
    },
    /** A target never changes, so any replica's is valid; a miss may be outdated. */
    async findOnReplica(
      code: string,
      fault: unknown,
      isCacheUnavailable: boolean,
    ): Promise<Target> {
      if (!(fault instanceof StoreError)) throw fault
      const { message, outcome, cause } = fault
      const silence = isCacheUnavailable
        ? new AllTiersUnavailable(message, { outcome, cause })
        : fault
      if (links.findOnReplica === undefined) throw silence
      let link: Link | undefined
      try {
        link = await links.findOnReplica(code)
      } catch (error) {
        onReplica.errors.inc()
        throw error instanceof StoreError ? silence : error
      }
      const target = targetOf(link)
      onReplica.count(target)
      if (target !== undefined) return target
      // A replica with the record knows that the link ended; a stale target does not.
      throw link === undefined ? silence : fault
    },
  }
}

/** Counts results and failures of the cache. */
function createLookCounts({ metrics: { lookups } }: Tiers) {
  const inCache = countsOf(lookups)('cache')
  const unknowns = lookups.labels('cache', 'unknown')
  return {
    note(seen: CacheAnswer) {
      if (seen.kind === 'unknown') unknowns.inc()
      else inCache.count(seen.kind === 'hit' ? seen.target : undefined)
    },
    /** Rethrows a defect. */
    noteFailure(error: unknown) {
      inCache.errors.inc()
      if (!(error instanceof StoreError)) throw error
    },
  }
}

/** Not awaited: the result of the look-up does not depend on it. */
function createCountedFill(cache: Pick<LinkCache, 'fill'>, { metrics }: Tiers) {
  const count = (outcome: string) => {
    metrics.linkCacheFills.inc({ result: outcome })
  }
  return (entry: CacheEntry) => {
    cache.fill(entry).then(
      (isStored) => {
        count(isStored ? 'stored' : 'refused')
      },
      (error: unknown) => {
        count('failed')
        if (!(error instanceof StoreError)) throw error
      },
    )
  }
}

function countsOf(lookups: Metrics['lookups']) {
  return (tier: string) => {
    const [hits, misses] = [lookups.labels(tier, 'hit'), lookups.labels(tier, 'miss')]
    return {
      count(target: Target | undefined) {
        if (target === undefined) misses.inc()
        else hits.inc()
      },
      errors: lookups.labels(tier, 'error'),
    }
  }
}
