// Read-through with fallback behind the in-process cache: the shared cache, a majority of the store
// and, if both are unavailable, any one replica. Decides what the shared cache may store.
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheResult, CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** The tiers of a lookup. */
export interface Tiers {
  readonly links: Pick<LinkStore, 'find'> & Partial<ReplicatedStore>
  /** Shared by several processes; absent if there is only one. */
  readonly cache?: Pick<LinkCache, 'lookUp' | 'fill'> | undefined
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'lookups' | 'linkCacheFills'>
}

/** Neither the cache nor any replica of the store returned a usable result. */
export class AllTiersUnavailable extends StoreError {}

/**
 * Looks a code up once. `isCurrent` returns, after the store's reply, whether this process has not
 * changed the record in the meantime: otherwise the cache is not filled. Rejects with StoreError if
 * no tier returned a reliable result.
 */
export type ReadTiers = (code: string, isCurrent: () => boolean) => Promise<Target | undefined>

/** Creates the lookup. */
export function createReadTiers(tiers: Tiers): ReadTiers {
  const { cache, nowMs } = tiers
  const store = createCountedReads(tiers)
  if (cache === undefined) {
    return (code) =>
      store.find(code).catch((error: unknown) => store.findOnReplica(code, error, true))
  }
  const cacheReads = createCacheCounts(tiers)
  const fill = createCountedFill(cache, tiers)
  return async (code, isCurrent) => {
    let cached: CacheResult | undefined
    try {
      cached = await cache.lookUp(code)
      cacheReads.note(cached)
    } catch (error) {
      cacheReads.noteFailure(error)
    }
    if (cached?.kind === 'hit') return cached.target
    if (cached?.kind === 'negative') return undefined
    let target: Target | undefined
    try {
      target = await store.find(code)
    } catch (error) {
      return store.findOnReplica(code, error, cached === undefined)
    }
    const lease = cached?.lease
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
    /** A target never changes, so that of any replica is valid; a miss may be outdated. */
    async findOnReplica(
      code: string,
      fault: unknown,
      isCacheUnavailable: boolean,
    ): Promise<Target> {
      if (!(fault instanceof StoreError)) throw fault
      const { message, outcome, cause } = fault
      const unavailable = isCacheUnavailable
        ? new AllTiersUnavailable(message, { outcome, cause })
        : fault
      if (links.findOnReplica === undefined) throw unavailable
      let link: Link | undefined
      try {
        link = await links.findOnReplica(code)
      } catch (error) {
        onReplica.errors.inc()
        throw error instanceof StoreError ? unavailable : error
      }
      const target = targetOf(link)
      onReplica.count(target)
      if (target !== undefined) return target
      // A replica with the record has the newer state of the link; a stale target does not.
      throw link === undefined ? unavailable : fault
    },
  }
}

/** Counts results and failures of the cache. */
function createCacheCounts({ metrics: { lookups } }: Tiers) {
  const inCache = countsOf(lookups)('cache')
  const unknowns = lookups.labels('cache', 'unknown')
  return {
    note(cached: CacheResult) {
      if (cached.kind === 'unknown') unknowns.inc()
      else inCache.count(cached.kind === 'hit' ? cached.target : undefined)
    },
    /** Rethrows a defect. */
    noteFailure(error: unknown) {
      inCache.errors.inc()
      if (!(error instanceof StoreError)) throw error
    },
  }
}

/** Not awaited: the result of the lookup does not depend on it. */
function createCountedFill(cache: Pick<LinkCache, 'fill'>, { metrics }: Tiers) {
  const count = (outcome: string) => {
    metrics.linkCacheFills.inc({ result: outcome })
  }
  return (entry: CacheEntry) => {
    cache.fill(entry).then(
      (isStored) => {
        count(isStored ? 'stored' : 'rejected')
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
