// A pool of minted codes, seen as two counters that only rise: blocks minted and blocks claimed.
import { createHash } from 'node:crypto'
import { BLOCK_SIZE, SEQ_MAX } from './block.ts'

/** A pool's row. Block c is claimed once `claimed >= c`, and there once `minted >= c`. */
export interface Pool {
  readonly pool: string
  /** 0 … 63, taken once and never again. */
  readonly poolNumber: number
  readonly minted: number
  readonly claimed: number
  /** Of the last claim; `null` before the first. */
  readonly writerId: string | null
  /** By `fingerprintOf`: a minter with another secret must refuse. */
  readonly secretFingerprint: string
}

/** Codes left: minted and not yet claimed. */
export function levelOf(pool: Pick<Pool, 'minted' | 'claimed'>): number {
  return (pool.minted - pool.claimed) * BLOCK_SIZE
}

/** How full a pool is to be kept, in codes. */
export interface PoolMarks {
  readonly lowWater: number
  readonly target: number
}

/** How many blocks to mint now: none at or above low water, else as many as reach the target. */
export function planRefill(pool: Pick<Pool, 'minted' | 'claimed'>, marks: PoolMarks): number {
  if (levelOf(pool) >= marks.lowWater) return 0
  const blocks = Math.ceil((marks.target - levelOf(pool)) / BLOCK_SIZE)
  return Math.max(0, Math.min(blocks, SEQ_MAX - pool.minted))
}

/** Names a secret without telling it. */
export function fingerprintOf(secret: Uint8Array): string {
  return createHash('sha256')
    .update('curtail code secret')
    .update(secret)
    .digest('hex')
    .slice(0, 32)
}
