// What one process remembers of links: where they point, for seconds, and, where it alone creates
// links, that there is none. Bounded in bytes; who reads judges the expiry of a link itself.
import { LRUCache } from 'lru-cache'
import type { Target } from '../links/decide-redirect.ts'

/** The longest life of a remembered link, from the start of its look-up. */
export const HIT_MS_MAX = 4000

/**
 * Bytes of remembered links, counted by their targets' lengths and OVERHEAD_BYTES each: some 45,000
 * links of usual length. Of more, few would be asked for again within HIT_MS_MAX.
 */
const HIT_BYTES_MAX = 16 * 1024 * 1024
const OVERHEAD_BYTES = 300
const MISSES_MAX = 20_000

/** A memory of links. */
export interface LinkMemory {
  /** The target, `null` for "there is none", or `undefined`: nothing is remembered. */
  get(code: string, nowMs: number): Target | null | undefined
  /** Remembers what a look-up begun at `begunMs` has found. */
  set(code: string, target: Target | undefined, begunMs: number): void
  /** Forgets a code. */
  delete(code: string): void
}

interface Hit extends Target {
  readonly untilMs: number
}

/** Makes an empty memory; "there is none" lives `missMs`, and 0 means that it is not remembered. */
export function createLinkMemory(options: {
  readonly missMs: number
  readonly random: () => number
}): LinkMemory {
  const { missMs, random } = options
  // No touch on read: a life counts from its look-up, or a hot link would never be read again.
  const hits = new LRUCache<string, Hit>({
    maxSize: HIT_BYTES_MAX,
    sizeCalculation: ({ longUrl }) => longUrl.length + OVERHEAD_BYTES,
  })
  const misses = new LRUCache<string, number>({ max: MISSES_MAX })
  return {
    get(code, nowMs) {
      const hit = hits.get(code)
      if (hit !== undefined && hit.untilMs > nowMs) return hit
      const untilMs = misses.get(code)
      return untilMs !== undefined && untilMs > nowMs ? null : undefined
    },
    set(code, target, begunMs) {
      if (target !== undefined) {
        // Jittered, so that links seen together are not read again together.
        hits.set(code, { ...target, untilMs: begunMs + HIT_MS_MAX * (0.75 + random() / 4) })
      } else if (missMs > 0) {
        misses.set(code, begunMs + missMs)
      }
    },
    delete(code) {
      hits.delete(code)
      misses.delete(code)
    },
  }
}
