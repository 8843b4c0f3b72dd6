// A keyed permutation of the code space: a Feistel network over two unequal halves, similar to FF1
// (NIST SP 800-38G), with AES as the round function. Each index maps to a different code, and the
// next code is unpredictable without the code secret, its key. Must never change: an index always
// maps to the same code.
import assert from 'node:assert/strict'
import { createCipheriv } from 'node:crypto'

/** Length of the code secret in bytes. */
export const SECRET_BYTES = 32

const ROUNDS = 10
const AES_BLOCK_BYTES = 16

/** A bijection of 0 … left × right − 1. */
export interface Permutation {
  /** The images of `start`, `start + 1`, … `start + count − 1`, in this order. */
  range(start: number, count: number): number[]
}

/** Sizes of the halves: 62³ and 62⁴ for codes, each below 2²⁴ so that sums stay exact. */
export interface Halves {
  readonly left: number
  readonly right: number
}

/** The halves of the 7-character code space. */
export const codeHalves: Halves = { left: 62 ** 3, right: 62 ** 4 }

/** The permutation of `halves` under `secret` (32 bytes). */
export function createPermutation(secret: Uint8Array, halves: Halves = codeHalves): Permutation {
  assert(
    secret.length === SECRET_BYTES,
    `Cannot permute as 'secret' must have ${SECRET_BYTES} bytes: it has ${secret.length}`,
  )
  const { left, right } = halves
  assert(Math.max(left, right) < 2 ** 24, 'Cannot permute as a half must be below 2^24')
  return {
    range(start, count) {
      assert(
        [start, count].every((n) => Number.isInteger(n) && n >= 0) && start + count <= left * right,
        `Cannot permute as ${count} indices from ${start} exceed the code space`,
      )
      const indices = Array.from({ length: count }, (_, i) => start + i)
      // a and b swap each round: their sizes are (left, right), then (right, left), …
      let a = indices.map((index) => Math.floor(index / right))
      let b = indices.map((index) => index % right)
      for (let round = 0; round < ROUNDS; round++) {
        const size = round % 2 === 0 ? left : right
        const pads = roundValues({ secret, round, inputs: b, size })
        const sums = a.map((value, i) => (value + (pads[i] ?? 0)) % size)
        a = b
        b = sums
      }
      return a.map((value, i) => value * right + (b[i] ?? 0))
    },
  }
}

/** The round function for many inputs in one cipher call; each result is below `size`. */
function roundValues(given: {
  secret: Uint8Array
  round: number
  inputs: readonly number[]
  size: number
}): number[] {
  const { secret, round, inputs, size } = given
  const plain = Buffer.alloc(inputs.length * AES_BLOCK_BYTES)
  inputs.forEach((input, i) => {
    plain.writeUInt8(round, i * AES_BLOCK_BYTES)
    plain.writeUInt32BE(size, i * AES_BLOCK_BYTES + 4)
    plain.writeUInt32BE(input, i * AES_BLOCK_BYTES + 12)
  })
  // Each input is one separate block: ECB applies the plain block cipher, which a round needs.
  const cipher = createCipheriv('aes-256-ecb', secret, null).setAutoPadding(false)
  const sealed = cipher.update(plain)
  return inputs.map((_, i) => {
    let rest = 0
    for (let at = i * AES_BLOCK_BYTES; at < (i + 1) * AES_BLOCK_BYTES; at += 2) {
      rest = (rest * 65_536 + sealed.readUInt16BE(at)) % size
    }
    return rest
  })
}
