// How fast a pool empties in the long run, for what must last for hours. Blocks are claimed whole,
// so that a short sight of one claim says nothing; this never says more than what was surely used.
import { BLOCK_SIZE } from './block.ts'
import type { PoolSight } from './claim-rate.ts'

/** Sights older than this are forgotten. */
const WINDOW_MS = 3 * 3600_000
/** Sights closer than this are one. */
const SPACING_MS = 60_000
/** Over less than this nothing is said. */
const SPAN_MS_MIN = 5 * 60_000

/** `sights`, oldest first, with one more. */
export function addLongSight(sights: readonly PoolSight[], sight: PoolSight): PoolSight[] {
  const fresh = sights.filter((seen) => seen.atMs > sight.atMs - WINDOW_MS)
  const [before, last] = [fresh.at(-2), fresh.at(-1)]
  const isNear = before !== undefined && last !== undefined && last.atMs - before.atMs < SPACING_MS
  return [...(isNear ? fresh.slice(0, -1) : fresh), sight]
}

/**
 * Codes a second that were surely used: between the first and the last claim seen, one block may
 * still be in use. 0 while little was seen.
 */
export function sustainedRateOf(sights: readonly PoolSight[]): number {
  const first = sights[0]
  const last = sights.at(-1)
  if (first === undefined || last === undefined) return 0
  const spanMs = last.atMs - first.atMs
  const blocks = last.claimed - first.claimed - 1
  return spanMs < SPAN_MS_MIN || blocks <= 0 ? 0 : (blocks * BLOCK_SIZE * 1000) / spanMs
}
