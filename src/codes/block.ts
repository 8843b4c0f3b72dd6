// Blocks of codes. What a block holds is a function of the secret and its number alone: whoever
// mints it writes the same, so minting twice is no fault.
import assert from 'node:assert/strict'
import { CODE_SPACE, GENERATED_LENGTH, toBase62 } from './base62.ts'
import { isOffensive } from './offensive.ts'
import type { Permutation } from './permutation.ts'

/** Indices in a block; never changes, or blocks would overlap. A few fewer codes come of them. */
export const BLOCK_SIZE = 1000

/** Pools share the space: each has one of these numbers, for ever. */
export const POOL_NUMBERS = 64

/** The last block of any pool that lies in the space whole. */
export const SEQ_MAX = Math.floor(CODE_SPACE / BLOCK_SIZE / POOL_NUMBERS) - 1

/** Which block of which pool. `seq` counts from 1. */
export interface BlockId {
  readonly poolNumber: number
  readonly seq: number
}

/** The codes of a block in the order they are handed out, less those that `isKept` keeps back. */
export function mintBlock(
  permutation: Permutation,
  id: BlockId,
  isKept: (code: string) => boolean,
): string[] {
  const { poolNumber, seq } = id
  assert(
    Number.isInteger(poolNumber) && poolNumber >= 0 && poolNumber < POOL_NUMBERS,
    `Cannot mint as 'poolNumber' must be below ${POOL_NUMBERS}: current value is ${poolNumber}`,
  )
  assert(
    Number.isInteger(seq) && seq >= 1 && seq <= SEQ_MAX,
    `Cannot mint as 'seq' must be from 1 to ${SEQ_MAX}: current value is ${seq}`,
  )
  const start = (seq * POOL_NUMBERS + poolNumber) * BLOCK_SIZE
  return permutation
    .range(start, BLOCK_SIZE)
    .map(toBase62)
    .filter((code) => !isKept(code) && !isOffensive(code))
}

/** Codes as one text, as stores keep them. */
export function packCodes(codes: readonly string[]): string {
  return codes.join('')
}

/** The codes in a stored text. */
export function unpackCodes(packed: string): string[] {
  assert(
    packed.length % GENERATED_LENGTH === 0,
    `Cannot unpack codes as ${packed.length} characters are no whole number of codes`,
  )
  return Array.from({ length: packed.length / GENERATED_LENGTH }, (_, i) =>
    packed.slice(i * GENERATED_LENGTH, (i + 1) * GENERATED_LENGTH),
  )
}
