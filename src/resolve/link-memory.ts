// The in-process cache of links: keeps targets for a few seconds. If only this process writes
// links, it keeps them for minutes, and also keeps negative entries. Targets are kept longer as
// stale targets, for when all tiers are unavailable. Bounded. `get` ignores `expiresAtMs`.
import { LRUCache } from 'lru-cache'
import type { Target } from '../links/decide-redirect.ts'
import { isExpired } from '../links/expiry.ts'
import { type CachedTarget, createTargetTable } from './target-table.ts'

/**
 * Maximum lifetime of a cached link, from the start of its lookup, if another process or a write of
 * unknown outcome may change the link. Also the maximum age of a lookup that another call joins.
 */
export const UNCERTAIN_HIT_MS = 4000
/**
 * Lifetimes in milliseconds in a process that is the only writer of links, and removes changed
 * links from its memory.
 */
export const ONLY_WRITER_MS = { hit: 600_000, miss: 60_000 } as const

/**
 * How long a stale target is served without another lookup, from the start of the failed lookup.
 * It is short, so that a recovered tier is used soon.
 */
export const EXTENSION_MS = 1000

const MIB = 1024 * 1024
/** Bounds of the table of targets: an entry takes 66 bytes plus the length of its target. */
const TABLE_MAX = { linksMax: 2 ** 18, targetBytesMax: 32 * MIB }
/** Memory for hot links. Each takes its target's length plus OVERHEAD_BYTES: about 11,000 fit. */
const HOT_BYTES_MAX = 4 * MIB
const OVERHEAD_BYTES = 300
/**
 * A table hit is copied to the hot links if the table last returned it at most this many reads ago.
 * Copies of links that are read less often would only evict each other.
 */
const COPY_WITHIN = 4096
/** The maximum number of negative entries. */
const NEGATIVES_MAX = 20_000

/** An in-process cache of links. */
export interface LinkMemory {
  /** The target, `null` for a negative entry, or `undefined` if the code is not cached. */
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
  /** Whether no other process writes links: enables ONLY_WRITER_MS and negative entries. */
  readonly isOnlyWriter: boolean
  /** Whether a write of unknown outcome may still take effect. @default () => false */
  readonly hasUnknownWrites?: (() => boolean) | undefined
  /** Maximum age in milliseconds of a target that `staleTarget` returns; 0: it returns none. */
  readonly staleMs: number
  readonly random: () => number
}): LinkMemory {
  const { isOnlyWriter, hasUnknownWrites = () => false, staleMs, random } = options
  const hot = createHotLinks()
  const table = createTargetTable(TABLE_MAX)
  let negatives: LRUCache<string, number> | undefined // allocates all its memory when created
  const store = (code: string, link: CachedTarget) => {
    hot.delete(code)
    table.put(code, link)
  }
  const readTable = (code: string, nowMs: number): CachedTarget | undefined => {
    const link = table.getFresh(code, nowMs)
    if (link !== undefined && table.readDistance() <= COPY_WITHIN) hot.set(code, link)
    return link
  }
  return {
    get(code, nowMs) {
      const hit = hot.get(code)
      // A start in the future means that the clock was set back: the age is unknown.
      if (hit !== undefined && hit.untilMs > nowMs && hit.fromMs <= nowMs) return hit
      const link = readTable(code, nowMs)
      if (link !== undefined) return link
      const missedAtMs = negatives?.get(code) ?? Infinity
      return missedAtMs <= nowMs && missedAtMs + ONLY_WRITER_MS.miss > nowMs ? null : undefined
    },
    set(code, target, startedMs) {
      if (target === undefined) {
        hot.delete(code)
        table.delete(code) // a deleted link must not be served as stale
        if (isOnlyWriter) negatives ??= new LRUCache({ max: NEGATIVES_MAX })
        if (!hasUnknownWrites()) negatives?.set(code, startedMs)
        return
      }
      negatives?.delete(code)
      const { longUrl, expiresAtMs } = target
      const msMax = isOnlyWriter && !hasUnknownWrites() ? ONLY_WRITER_MS.hit : UNCERTAIN_HIT_MS
      // With jitter, so that links that are cached together are not looked up together later.
      const untilMs = startedMs + msMax * (0.75 + random() / 4)
      store(code, { longUrl, expiresAtMs, lookedUpMs: startedMs, fromMs: startedMs, untilMs })
    },
    staleTarget(code, nowMs) {
      const link = table.get(code)
      if (link === undefined) return undefined
      // Too old, or from the future: the clock was set back by at least `staleMs`.
      if (Math.abs(nowMs - link.lookedUpMs) >= staleMs) return undefined
      return isExpired(link.expiresAtMs, nowMs) ? undefined : link
    },
    extend(code, startedMs) {
      const link = table.get(code)
      const untilMs = startedMs + EXTENSION_MS
      // Keeps a later end, unless the start is in the future because the clock was set back.
      if (link === undefined || (link.untilMs >= untilMs && link.fromMs <= startedMs)) return
      store(code, { ...link, fromMs: startedMs, untilMs })
    },
    delete(code) {
      hot.delete(code)
      table.delete(code)
      negatives?.delete(code)
    },
  }
}

/** Hot links as objects. A hit does not extend `untilMs`: even a hot link is looked up after it. */
function createHotLinks(): LRUCache<string, CachedTarget> {
  return new LRUCache({
    maxSize: HOT_BYTES_MAX,
    sizeCalculation: ({ longUrl }) => longUrl.length + OVERHEAD_BYTES,
  })
}
