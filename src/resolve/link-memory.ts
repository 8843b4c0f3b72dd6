// The in-process cache of links: targets for a few seconds and, if only this process creates links,
// negative entries. Targets are kept longer as stale targets, for when all tiers are unavailable.
// Bounded in size. `get` also returns expired links: its caller checks.
import { LRUCache } from 'lru-cache'
import type { Target } from '../links/decide-redirect.ts'
import { isExpired } from '../links/expiry.ts'
import { type CachedTarget, createTargetTable, type TargetTable } from './target-table.ts'

/** Maximum lifetime of a cached link, from the start of its lookup. */
export const HIT_MS_MAX = 4000

/**
 * How long a stale target is served without another lookup, from the start of the failed lookup.
 * It is short, so that a recovered tier is used soon.
 */
export const EXTENSION_MS = 1000

const MIB = 1024 * 1024
/**
 * Bytes of cached links: the length of each target plus OVERHEAD_BYTES. About 45,000 links of usual
 * length fit; any further links would rarely be requested twice within HIT_MS_MAX.
 */
const HIT_BYTES_MAX = 16 * MIB
const OVERHEAD_BYTES = 300
/** Bounds of the table: an entry takes about 50 bytes plus the length of its target. */
const TABLE_MAX = { linksMax: 2 ** 18, targetBytesMax: 32 * MIB }
/** The maximum number of negative entries. */
const MISSES_MAX = 20_000

/** An in-process cache of links. */
export interface LinkMemory {
  /** The target, `null` for a negative entry, or `undefined`: not cached. */
  get(code: string, nowMs: number): Target | null | undefined
  /** Stores the result of a lookup that started at `startedMs`. */
  set(code: string, target: Target | undefined, startedMs: number): void
  /** The stale target, if it is not too old and the link has not expired. */
  staleTarget(code: string, nowMs: number): Target | undefined
  /** Allows `get` to return the stale target for EXTENSION_MS from `startedMs`. */
  extend(code: string, startedMs: number): void
  /** Removes a code. */
  delete(code: string): void
}

/** Creates an empty cache. */
export function createLinkMemory(options: {
  /** Lifetime of a negative entry in milliseconds; 0: none are kept. */
  readonly missMs: number
  /** Maximum age in milliseconds of a target that `staleTarget` returns; 0: it returns none. */
  readonly staleMs: number
  readonly random: () => number
}): LinkMemory {
  const { missMs, staleMs, random } = options
  // A read does not extend a lifetime: otherwise a hot link would never be re-read.
  const hits = new LRUCache<string, CachedTarget>({
    maxSize: HIT_BYTES_MAX,
    sizeCalculation: ({ longUrl }) => longUrl.length + OVERHEAD_BYTES,
  })
  // If `staleMs` > 0, a new target is stored here, and in `hits` only on its second use.
  let table: TargetTable | undefined
  const misses = missMs > 0 ? new LRUCache<string, number>({ max: MISSES_MAX }) : undefined
  const keep = (code: string, link: CachedTarget) => {
    if (staleMs > 0) {
      hits.delete(code)
      table ??= createTargetTable(TABLE_MAX)
      table.put(code, link)
    } else {
      hits.set(code, link)
    }
  }
  const promote = (code: string, nowMs: number): CachedTarget | undefined => {
    const link = table?.getFresh(code, nowMs)
    if (link !== undefined) hits.set(code, link)
    return link
  }
  return {
    get(code, nowMs) {
      const hit = hits.get(code)
      // A start in the future means that the clock was set back: the age is unknown.
      if (hit !== undefined && hit.untilMs > nowMs && hit.fromMs <= nowMs) return hit
      const link = promote(code, nowMs)
      if (link !== undefined) return link
      const missedAtMs = misses?.get(code) ?? Infinity
      return missedAtMs <= nowMs && missedAtMs + missMs > nowMs ? null : undefined
    },
    set(code, target, startedMs) {
      if (target === undefined) {
        hits.delete(code)
        table?.delete(code) // a deleted link must not be served as stale
        misses?.set(code, startedMs)
        return
      }
      const { longUrl, expiresAtMs } = target
      // Jittered, so that links cached together are not re-read together.
      const untilMs = startedMs + HIT_MS_MAX * (0.75 + random() / 4)
      keep(code, { longUrl, expiresAtMs, readAtMs: startedMs, fromMs: startedMs, untilMs })
    },
    staleTarget(code, nowMs) {
      const link = table?.get(code)
      if (link === undefined || link.readAtMs + staleMs <= nowMs) return undefined
      return isExpired(link.expiresAtMs, nowMs) ? undefined : link
    },
    extend(code, startedMs) {
      const link = table?.get(code)
      const untilMs = startedMs + EXTENSION_MS
      if (link === undefined || link.untilMs >= untilMs) return
      keep(code, { ...link, fromMs: startedMs, untilMs })
    },
    delete(code) {
      hits.delete(code)
      table?.delete(code)
      misses?.delete(code)
    },
  }
}
