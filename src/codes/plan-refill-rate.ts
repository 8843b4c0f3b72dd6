// Computes the long-term claim rate of a pool, for headroomHours. Blocks are claimed whole, so the
// last one is not counted: it may be mostly unused.
import { BLOCK_SIZE } from './block.ts'
import type { ClaimSample } from './claim-rate.ts'

/** Older samples are dropped. */
const WINDOW_MS = 3 * 3600_000
/** Samples closer than this are merged. */
const SPACING_MS = 60_000
/** Minimum time span; over a shorter one the rate is 0. */
const SPAN_MS_MIN = 5 * 60_000

/** Appends a sample to `samples`, oldest first. */
export function addLongTermSample(
  samples: readonly ClaimSample[],
  sample: ClaimSample,
): ClaimSample[] {
  const fresh = samples.filter(({ atMs }) => atMs > sample.atMs - WINDOW_MS)
  const [before, last] = [fresh.at(-2), fresh.at(-1)]
  const isNear = before !== undefined && last !== undefined && last.atMs - before.atMs < SPACING_MS
  return [...(isNear ? fresh.slice(0, -1) : fresh), sample]
}

/**
 * Codes claimed per second between the first and the last sample, without the last block; 0 if the
 * samples are too few or too close.
 */
export function sustainedRateOf(samples: readonly ClaimSample[]): number {
  const first = samples[0]
  const last = samples.at(-1)
  if (first === undefined || last === undefined) return 0
  const spanMs = last.atMs - first.atMs
  const blocks = last.claimed - first.claimed - 1
  return spanMs < SPAN_MS_MIN || blocks <= 0 ? 0 : (blocks * BLOCK_SIZE * 1000) / spanMs
}
