// A keyed permutation of the code space: a Feistel network over two unequal halves, similar to FF1
// (NIST SP 800-38G), with AES as the round function; its key is the code secret. Each index maps to
// a different code, and the next code is unpredictable without the secret. Must never change: an
// index always maps to the same code.
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

/** Sizes of the halves: 62³ and 62⁴ for codes, each below 2²⁴ so that products stay exact. */
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
    `Cannot permute: 'secret' must have ${SECRET_BYTES} bytes: it has ${secret.length}`,
  )
  const { left, right } = halves
  assert(Math.max(left, right) < 2 ** 24, 'Cannot permute: each half must be below 2^24')
  return {
    range(start, count) {
      assert(
        [start, count].every((n) => Number.isInteger(n) && n >= 0) && start + count <= left * right,
        `Cannot permute: ${count} indices from ${start} exceed the code space`,
      )
      const indices = Array.from({ length: count }, (_, i) => start + i)
      // a and b swap each round: their sizes are (left, right), then (right, left), …
      let a = indices.map((index) => Math.floor(index / right))
      let b = indices.map((index) => index % right)
      for (let round = 0; round < ROUNDS; round++) {
        const size = round % 2 === 0 ? left : right
        const sums = addRoundValues(a, { secret, round, inputs: b, size })
        a = b
        b = sums
      }
      return a.map((value, i) => value * right + (b[i] ?? 0))
    },
  }
}

/** Adds the round function of each input to its value, modulo `size`, with one cipher call. */
function addRoundValues(
  values: readonly number[],
  given: {
    readonly secret: Uint8Array
    readonly round: number
    readonly inputs: readonly number[]
    readonly size: number
  },
): number[] {
  const { secret, round, inputs, size } = given
  const plain = new DataView(new ArrayBuffer(inputs.length * AES_BLOCK_BYTES))
  inputs.forEach((input, i) => {
    plain.setUint8(i * AES_BLOCK_BYTES, round)
    plain.setUint32(i * AES_BLOCK_BYTES + 4, size)
    plain.setUint32(i * AES_BLOCK_BYTES + 12, input)
  })
  // Each input is one separate block: ECB applies the plain block cipher, which a round needs.
  const cipher = createCipheriv('aes-256-ecb', secret, null).setAutoPadding(false)
  const { buffer, byteOffset } = cipher.update(plain)
  const sealed = new DataView(buffer, byteOffset)
  const shift = 2 ** 32 % size
  return values.map((value, i) => {
    const at = i * AES_BLOCK_BYTES
    // The block modulo `size`, 32 bits at a time: no dividend reaches 2^53.
    let rest = modulo(sealed.getUint32(at), size)
    rest = modulo(rest * shift + sealed.getUint32(at + 4), size)
    rest = modulo(rest * shift + sealed.getUint32(at + 8), size)
    return modulo(rest * shift + sealed.getUint32(at + 12) + value, size)
  })
}

/** `dividend % divisor` in less time, for whole numbers whose sum is below 2^53. */
function modulo(dividend: number, divisor: number): number {
  return dividend - Math.floor(dividend / divisor) * divisor
}
