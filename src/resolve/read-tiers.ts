// The tiers behind a process's memory: the shared cache, a majority of the store, and where none
// answers any one replica. Decides whom to believe, and what the cache may remember of it.
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheAnswer, CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../links/link-store.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** Where links may be found. */
export interface Tiers {
  readonly links: Pick<LinkStore, 'find'> & Partial<ReplicatedStore>
  /** What several processes share; absent where there is one. */
  readonly cache?: Pick<LinkCache, 'look' | 'fill'> | undefined
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'lookups' | 'linkCacheFills'>
}

/** Neither the cache nor any replica of the store said anything of the code. */
export class NobodyAnswered extends StoreError {}

/**
 * Asks for a code once. `isCurrent` tells, when the store has answered, that this process has not
 * changed the record meanwhile: else the cache is given nothing. Rejects with StoreError: nobody
 * answered who can be believed.
 */
export type AskTiers = (code: string, isCurrent: () => boolean) => Promise<Target | undefined>

/** Makes the asking. */
export function createAskTiers(tiers: Tiers): AskTiers {
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
    const permit = seen?.permit
    if (permit !== undefined && isCurrent()) fill({ code, permit, target, nowMs: nowMs() })
    return target
  }
}

function createCountedReads({ links, metrics: { lookups } }: Tiers) {
  const counts = countsOf(lookups)
  const [inStore, onReplica] = [counts('store'), counts('replica')]
  return {
    /** What a majority says. */
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
    /** A target never changes, so it is right whoever says it; all else may be old. */
    async findOnReplica(code: string, fault: unknown, isCacheAway: boolean): Promise<Target> {
      if (!(fault instanceof StoreError)) throw fault
      const { message, outcome, cause } = fault
      const silence = isCacheAway ? new NobodyAnswered(message, { outcome, cause }) : fault
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
      // A replica that has the record knows of its end, other than whoever saw it before.
      throw link === undefined ? silence : fault
    },
  }
}

/** Counts what the cache says, and that it did not answer. */
function createLookCounts({ metrics: { lookups } }: Tiers) {
  const inCache = countsOf(lookups)('cache')
  const unknowns = lookups.labels('cache', 'unknown')
  return {
    note(seen: CacheAnswer) {
      if (seen.kind === 'unknown') unknowns.inc()
      else inCache.count(seen.kind === 'hit' ? seen.target : undefined)
    },
    /** Throws a defect on. */
    noteFailure(error: unknown) {
      inCache.errors.inc()
      if (!(error instanceof StoreError)) throw error
    },
  }
}

/** Nobody waits for it: whether it is done or refused, the answer is the same. */
function createCountedFill(cache: Pick<LinkCache, 'fill'>, { metrics }: Tiers) {
  const count = (outcome: string) => {
    metrics.linkCacheFills.inc({ outcome })
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
