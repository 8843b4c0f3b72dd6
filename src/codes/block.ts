// Blocks: the units in which codes are minted (generated) and claimed. The codes of a block depend
// only on its id, the code secret and the exclusions, so minting is idempotent.
import assert from 'node:assert/strict'
import { CODE_SPACE, GENERATED_LENGTH, toBase62 } from './base62.ts'
import { isOffensive } from './offensive.ts'
import type { Permutation } from './permutation.ts'

/**
 * Number of indices in a block; must never change, or blocks would overlap. A block has fewer codes
 * if some are excluded.
 */
export const BLOCK_SIZE = 1000

/** Number of pools that can share the code space: each pool has one number, permanently. */
export const POOL_NUMBERS = 64

/** The last block that is completely in the code space, for every pool. */
export const SEQ_MAX = Math.floor(CODE_SPACE / BLOCK_SIZE / POOL_NUMBERS) - 1

/** Identifies a block of a pool. `seq` starts at 1. */
export interface BlockId {
  readonly poolNumber: number
  readonly seq: number
}

/** The codes of a block in the order of use, without excluded and offensive codes. */
export function mintBlock(
  permutation: Permutation,
  id: BlockId,
  isExcluded: (code: string) => boolean,
): string[] {
  const { poolNumber, seq } = id
  assert(
    Number.isInteger(poolNumber) && poolNumber >= 0 && poolNumber < POOL_NUMBERS,
    `Cannot mint: 'poolNumber' must be below ${POOL_NUMBERS}: current value is ${poolNumber}`,
  )
  assert(
    Number.isInteger(seq) && seq >= 1 && seq <= SEQ_MAX,
    `Cannot mint: 'seq' must be from 1 to ${SEQ_MAX}: current value is ${seq}`,
  )
  const start = (seq * POOL_NUMBERS + poolNumber) * BLOCK_SIZE
  return permutation
    .range(start, BLOCK_SIZE)
    .map(toBase62)
    .filter((code) => !isExcluded(code) && !isOffensive(code))
}

/** Joins codes into one string, as stored. */
export function packCodes(codes: readonly string[]): string {
  return codes.join('')
}

/** Splits a stored string into its codes. */
export function unpackCodes(packed: string): string[] {
  assert(
    packed.length % GENERATED_LENGTH === 0,
    `Cannot unpack codes: ${packed.length} characters are not a whole number of codes`,
  )
  return Array.from({ length: packed.length / GENERATED_LENGTH }, (_, i) =>
    packed.slice(i * GENERATED_LENGTH, (i + 1) * GENERATED_LENGTH),
  )
}
