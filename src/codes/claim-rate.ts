// How fast a pool empties, from what was seen of it over the last minutes.
import { BLOCK_SIZE } from './block.ts'

/** One sight of a pool. */
export interface PoolSight {
  readonly atMs: number
  readonly claimed: number
}

/** Sights older than this say nothing of the rate now. */
export const RATE_WINDOW_MS = 10 * 60_000

/** Blocks are claimed whole, so that a rate over less than this would leap. */
const RATE_SPAN_MS_MIN = 60_000

const SIGHTS_MAX = 256

/** `sights`, oldest first, with one more and without those that are too old. */
export function addSight(sights: readonly PoolSight[], sight: PoolSight): PoolSight[] {
  const fresh = sights.filter((seen) => seen.atMs > sight.atMs - RATE_WINDOW_MS)
  return [...fresh, sight].slice(-SIGHTS_MAX)
}

/** Codes claimed a second over the sights; 0 until there are two. */
export function claimRateOf(sights: readonly PoolSight[]): number {
  const first = sights[0]
  const last = sights.at(-1)
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return 0
  const spanMs = Math.max(last.atMs - first.atMs, RATE_SPAN_MS_MIN)
  return ((last.claimed - first.claimed) * BLOCK_SIZE * 1000) / spanMs
}

/** Seconds until a level is used up at a rate; `null` where nothing is being claimed. */
export function secondsToEmpty(level: number, claimRate: number): number | null {
  return claimRate > 0 ? Math.floor(level / claimRate) : null
}
