// Computes how fast the codes of a pool are claimed, from samples of the last minutes.
import { BLOCK_SIZE } from './block.ts'

/** The number of claimed blocks of a pool at one time. */
export interface ClaimSample {
  readonly atMs: number
  readonly claimed: number
}

/** Older samples are dropped. */
export const RATE_WINDOW_MS = 10 * 60_000

/** Minimum time span: over a shorter one the rate would vary, because blocks are claimed whole. */
const RATE_SPAN_MS_MIN = 60_000

const SAMPLES_MAX = 256

/** Appends a sample to `samples`, oldest first, and drops expired ones. */
export function addClaimSample(
  samples: readonly ClaimSample[],
  sample: ClaimSample,
): ClaimSample[] {
  const fresh = samples.filter(({ atMs }) => atMs > sample.atMs - RATE_WINDOW_MS)
  return [...fresh, sample].slice(-SAMPLES_MAX)
}

/** Codes claimed per second over the samples; 0 with fewer than two samples. */
export function claimRateOf(samples: readonly ClaimSample[]): number {
  const first = samples[0]
  const last = samples.at(-1)
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return 0
  const spanMs = Math.max(last.atMs - first.atMs, RATE_SPAN_MS_MIN)
  return ((last.claimed - first.claimed) * BLOCK_SIZE * 1000) / spanMs
}

/** Seconds until a pool is empty at a rate; `null` if the rate is not positive. */
export function secondsToEmpty(level: number, claimRate: number): number | null {
  return claimRate > 0 ? Math.floor(level / claimRate) : null
}
