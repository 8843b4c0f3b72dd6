// The lookup behind the in-process cache: reads the shared cache, then a majority of the store's
// replicas and, if the majority read fails, any one replica. Decides what the shared cache stores.
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheResult, CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** The tiers of a lookup, its clock and its metrics. */
export interface TierDeps {
  readonly links: Pick<LinkStore, 'find'> & Partial<ReplicatedStore>
  /** Shared by several processes; absent if there is only one. */
  readonly cache?: Pick<LinkCache, 'lookUp' | 'fill'> | undefined
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'lookups' | 'linkCacheFills'>
}

/** The shared cache (if any) and the majority read failed, and no replica returned a record. */
export class AllTiersUnavailable extends StoreError {}

/**
 * Looks up a code once. `isCurrent` is called before the shared cache is filled. If it returns
 * false, the result may be outdated, because this process has changed the record or a newer lookup
 * has replaced this one; the cache is then not filled. Rejects with StoreError if no tier returned
 * a reliable result.
 */
export type ReadTiers = (code: string, isCurrent: () => boolean) => Promise<Target | undefined>

/** Creates the lookup over these tiers. */
export function createReadTiers(tiers: TierDeps): ReadTiers {
  const { cache, nowMs } = tiers
  const store = createCountedReads(tiers)
  if (cache === undefined) {
    return (code) =>
      store.find(code).catch((error: unknown) => store.findOnReplica(code, error, true))
  }
  const cacheCounts = createCacheCounts(tiers)
  const fill = createCountedFill(cache, tiers)
  return async (code, isCurrent) => {
    let cached: CacheResult | undefined
    try {
      cached = await cache.lookUp(code)
      cacheCounts.count(cached)
    } catch (error) {
      cacheCounts.countError(error)
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

function createCountedReads({ links, metrics: { lookups } }: TierDeps) {
  const storeCounts = tierCounters(lookups, 'store')
  const replicaCounts = tierCounters(lookups, 'replica')
  return {
    /** Reads from a majority of the replicas. */
    async find(code: string): Promise<Target | undefined> {
      try {
        const target = targetOf(await links.find(code))
        storeCounts.count(target)
        return target
      } catch (error) {
        storeCounts.errors.inc()
        throw error
      }
    },
    /**
     * Reads from any one replica after `fault`, the error of the majority read. The target of a
     * link never changes, so a target that is found is served, although the link may have been
     * disabled or deleted since. A miss may be outdated, and is not returned: throws instead.
     */
    async findOnReplica(
      code: string,
      fault: unknown,
      isCacheUnavailable: boolean,
    ): Promise<Target> {
      if (!(fault instanceof StoreError)) throw fault
      const { message, outcome, cause } = fault
      const noRecordError = isCacheUnavailable
        ? new AllTiersUnavailable(message, { outcome, cause })
        : fault
      if (links.findOnReplica === undefined) throw noRecordError
      let link: Link | undefined
      try {
        link = await links.findOnReplica(code)
      } catch (error) {
        replicaCounts.errors.inc()
        throw error instanceof StoreError ? noRecordError : error
      }
      const target = targetOf(link)
      replicaCounts.count(target)
      if (target !== undefined) return target
      // If the record is that of a disabled or deleted link, the caller must serve no stale target.
      throw link === undefined ? noRecordError : fault
    },
  }
}

/**
 * Counts the reads of the cache. A negative entry counts as a `miss`, like a code without a link in
 * the store. A code that is not cached counts as `unknown`.
 */
function createCacheCounts({ metrics: { lookups } }: TierDeps) {
  const counters = tierCounters(lookups, 'cache')
  const unknowns = lookups.labels('cache', 'unknown')
  return {
    count(cached: CacheResult) {
      if (cached.kind === 'unknown') unknowns.inc()
      else counters.count(cached.kind === 'hit' ? cached.target : undefined)
    },
    /** Counts an error; rethrows it unless it is a StoreError. */
    countError(error: unknown) {
      counters.errors.inc()
      if (!(error instanceof StoreError)) throw error
    },
  }
}

/** Creates a fill that is not awaited: the result of the lookup does not depend on it. */
function createCountedFill(cache: Pick<LinkCache, 'fill'>, { metrics }: TierDeps) {
  const count = (result: string) => {
    metrics.linkCacheFills.inc({ result })
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

/** The counters of a tier. */
function tierCounters(lookups: Metrics['lookups'], tier: 'cache' | 'store' | 'replica') {
  const [hits, misses] = [lookups.labels(tier, 'hit'), lookups.labels(tier, 'miss')]
  return {
    count(target: Target | undefined) {
      if (target === undefined) misses.inc()
      else hits.inc()
    },
    errors: lookups.labels(tier, 'error'),
  }
}
