// A pool: a named supply of generated codes. Two counters, which only increase, count its blocks
// that were minted (generated) and claimed.
import { createHash } from 'node:crypto'
import { BLOCK_SIZE, SEQ_MAX } from './block.ts'

/** A pool's row. Block c exists once `minted >= c` and is claimed once `claimed >= c`. */
export interface Pool {
  readonly pool: string
  /** 0 … 63; assigned once, never reused. */
  readonly poolNumber: number
  readonly minted: number
  readonly claimed: number
  /** The writer of the last claim or RaiseChange; `null` before the first. */
  readonly writerId: string | null
  /** From `fingerprintOf`, so that minting with a different secret fails. */
  readonly secretFingerprint: string
}

/**
 * Skips blocks after a restore from a backup: if the counters still equal `from`, sets `claimed` to
 * `to`, and `minted` to at least `to`.
 */
export interface RaiseChange {
  readonly pool: string
  readonly from: Pick<Pool, 'claimed' | 'minted'>
  readonly to: number
  readonly writerId: string
}

/** The level of a pool: codes that are minted and not claimed. */
export function levelOf(pool: Pick<Pool, 'minted' | 'claimed'>): number {
  return (pool.minted - pool.claimed) * BLOCK_SIZE
}

/** The low-water mark and the target level, in codes. */
export interface PoolMarks {
  readonly lowWater: number
  readonly target: number
}

/** Number of blocks to mint: 0 if the level is at least `lowWater`, else enough for `target`. */
export function planRefill(pool: Pick<Pool, 'minted' | 'claimed'>, marks: PoolMarks): number {
  if (levelOf(pool) >= marks.lowWater) return 0
  const blocks = Math.ceil((marks.target - levelOf(pool)) / BLOCK_SIZE)
  return Math.max(0, Math.min(blocks, SEQ_MAX - pool.minted))
}

/** Identifies a secret without revealing it. */
export function fingerprintOf(secret: Uint8Array): string {
  return createHash('sha256')
    .update('curtail code secret')
    .update(secret)
    .digest('hex')
    .slice(0, 32)
}
