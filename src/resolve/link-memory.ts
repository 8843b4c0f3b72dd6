// What one process remembers of links: where they point, for seconds, and, where it alone creates
// links, that there is none. Targets stay beyond their seconds for when nobody else can answer.
// Bounded in bytes; who reads judges the expiry of a link itself.
import { LRUCache } from 'lru-cache'
import type { Target } from '../links/decide-redirect.ts'
import { isExpired } from '../links/expiry.ts'
import { createSeenLinks, type SeenLink, type SeenLinks } from './stale-links.ts'

/** The longest life of a remembered link, from the start of its look-up. */
export const HIT_MS_MAX = 4000

/**
 * How long a target that nobody could confirm is given out again without asking, from the start of
 * the look-up that failed: short, so that whoever is back is asked soon.
 */
export const HOLD_MS = 1000

const MIB = 1024 * 1024
/**
 * Bytes of remembered links, counted by their targets' lengths and OVERHEAD_BYTES each: some 45,000
 * links of usual length. Of more, few would be asked for again within HIT_MS_MAX.
 */
const HIT_BYTES_MAX = 16 * MIB
const OVERHEAD_BYTES = 300
/** Where links may be wanted for a day, so many are kept, in some 50 bytes each and these. */
const STALE_MAX = { linksMax: 2 ** 18, targetBytesMax: 32 * MIB }
const MISSES_MAX = 20_000

/** A memory of links. */
export interface LinkMemory {
  /** The target, `null` for "there is none", or `undefined`: nothing is remembered. */
  get(code: string, nowMs: number): Target | null | undefined
  /** Remembers what a look-up begun at `begunMs` has found. */
  set(code: string, target: Target | undefined, begunMs: number): void
  /** The target as it was last seen, if that is not too long ago and it has not expired. */
  lastSeen(code: string, nowMs: number): Target | undefined
  /** Lets `get` give the target last seen for HOLD_MS from `begunMs`, for nobody could answer. */
  hold(code: string, begunMs: number): void
  /** Forgets a code. */
  delete(code: string): void
}

/** Makes an empty memory. */
export function createLinkMemory(options: {
  /** How long "there is none" lives; 0: it is not remembered. */
  readonly missMs: number
  /** How long ago a target may have been seen to be given out by `lastSeen`; 0: none is. */
  readonly staleMs: number
  readonly random: () => number
}): LinkMemory {
  const { missMs, staleMs, random } = options
  // No touch on read: a life counts from its look-up, or a hot link would never be read again.
  const hits = new LRUCache<string, SeenLink>({
    maxSize: HIT_BYTES_MAX,
    sizeCalculation: ({ longUrl }) => longUrl.length + OVERHEAD_BYTES,
  })
  // What is seen comes in here, and among the hits when it is asked for again: most never is.
  let seen: SeenLinks | undefined
  const misses = missMs > 0 ? new LRUCache<string, number>({ max: MISSES_MAX }) : undefined
  const keep = (code: string, link: SeenLink) => {
    if (staleMs > 0) {
      hits.delete(code)
      seen ??= createSeenLinks(STALE_MAX)
      seen.put(code, link)
    } else {
      hits.set(code, link)
    }
  }
  const getSeen = (code: string, nowMs: number): SeenLink | undefined => {
    const link = seen?.getFresh(code, nowMs)
    if (link !== undefined) hits.set(code, link)
    return link
  }
  return {
    get(code, nowMs) {
      const hit = hits.get(code)
      // What begins in the future was seen before the clock was set back: nobody knows its age.
      if (hit !== undefined && hit.untilMs > nowMs && hit.fromMs <= nowMs) return hit
      const link = getSeen(code, nowMs)
      if (link !== undefined) return link
      const seenMs = misses?.get(code) ?? Infinity
      return seenMs <= nowMs && seenMs + missMs > nowMs ? null : undefined
    },
    set(code, target, begunMs) {
      if (target === undefined) {
        hits.delete(code)
        seen?.delete(code) // also for `lastSeen`: what is gone must not come back
        misses?.set(code, begunMs)
        return
      }
      const { longUrl, expiresAtMs } = target
      // Jittered, so that links seen together are not read again together.
      const untilMs = begunMs + HIT_MS_MAX * (0.75 + random() / 4)
      keep(code, { longUrl, expiresAtMs, seenMs: begunMs, fromMs: begunMs, untilMs })
    },
    lastSeen(code, nowMs) {
      const link = seen?.get(code)
      if (link === undefined || link.seenMs + staleMs <= nowMs) return undefined
      return isExpired(link.expiresAtMs, nowMs) ? undefined : link
    },
    hold(code, begunMs) {
      const link = seen?.get(code)
      const untilMs = begunMs + HOLD_MS
      if (link === undefined || link.untilMs >= untilMs) return
      keep(code, { ...link, fromMs: begunMs, untilMs })
    },
    delete(code) {
      hits.delete(code)
      seen?.delete(code)
      misses?.delete(code)
    },
  }
}
