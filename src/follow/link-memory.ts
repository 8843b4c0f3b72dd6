// What one process remembers of links: where they point, for seconds, and, where it alone creates
// links, that there is none. Targets stay beyond their seconds for when nobody else can answer.
// Bounded in bytes; who reads judges the expiry of a link itself.
import { LRUCache } from 'lru-cache'
import type { Target } from '../links/decide-redirect.ts'
import { isExpired } from '../links/expiry.ts'

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
/** Where they may be wanted for a day: some 180,000. */
const STALE_BYTES_MAX = 64 * MIB
const OVERHEAD_BYTES = 300
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

interface Hit extends Target {
  readonly seenMs: number
  fromMs: number
  untilMs: number
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
  const hits = new LRUCache<string, Hit>({
    maxSize: staleMs > 0 ? STALE_BYTES_MAX : HIT_BYTES_MAX,
    sizeCalculation: ({ longUrl }) => longUrl.length + OVERHEAD_BYTES,
  })
  const misses = missMs > 0 ? new LRUCache<string, number>({ max: MISSES_MAX }) : undefined
  return {
    get(code, nowMs) {
      const hit = hits.get(code)
      // What begins in the future was seen before the clock was set back: nobody knows its age.
      if (hit !== undefined && hit.untilMs > nowMs && hit.fromMs <= nowMs) return hit
      const untilMs = misses?.get(code)
      return untilMs !== undefined && untilMs > nowMs ? null : undefined
    },
    set(code, target, begunMs) {
      if (target === undefined) {
        hits.delete(code) // also for `lastSeen`: what is gone must not come back
        misses?.set(code, begunMs + missMs)
        return
      }
      const { longUrl, expiresAtMs } = target
      // Jittered, so that links seen together are not read again together.
      const untilMs = begunMs + HIT_MS_MAX * (0.75 + random() / 4)
      hits.set(code, { longUrl, expiresAtMs, seenMs: begunMs, fromMs: begunMs, untilMs })
    },
    lastSeen(code, nowMs) {
      const hit = hits.get(code)
      if (hit === undefined || hit.seenMs + staleMs <= nowMs) return undefined
      return isExpired(hit.expiresAtMs, nowMs) ? undefined : hit
    },
    hold(code, begunMs) {
      const hit = hits.get(code)
      if (hit === undefined || hit.untilMs >= begunMs + HOLD_MS) return
      hit.fromMs = begunMs
      hit.untilMs = begunMs + HOLD_MS
    },
    delete(code) {
      hits.delete(code)
      misses?.delete(code)
    },
  }
}
