// The permutation: bijective, invertible, different for each secret, and fixed by golden values.
import { createCipheriv } from 'node:crypto'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { CODE_SPACE, toBase62 } from './base62.ts'
import { codeHalves, createPermutation, type Halves, SECRET_BYTES } from './permutation.ts'

const secret = Uint8Array.from({ length: SECRET_BYTES }, (_, i) => i)
const secrets = fc.uint8Array({ minLength: SECRET_BYTES, maxLength: SECRET_BYTES })
const indices = fc.nat({ max: CODE_SPACE - 1 })

/** Reference implementation of the round function: one input, with BigInt. */
function roundValue(
  key: Uint8Array,
  given: { round: number; input: number; size: number },
): number {
  const plain = Buffer.alloc(16)
  plain.writeUInt8(given.round, 0)
  plain.writeUInt32BE(given.size, 4)
  plain.writeUInt32BE(given.input, 12)
  const sealed = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false).update(plain)
  return Number(BigInt(`0x${sealed.toString('hex')}`) % BigInt(given.size))
}

/** The input whose image is `image`. */
function inverse(key: Uint8Array, image: number, { left, right }: Halves): number {
  let a = Math.floor(image / right)
  let b = image % right
  for (let round = 9; round >= 0; round--) {
    const size = round % 2 === 0 ? left : right
    const before = b - roundValue(key, { round, input: a, size })
    b = a
    a = ((before % size) + size) % size
  }
  return a * right + b
}

const small: readonly Halves[] = [
  { left: 5 ** 3, right: 5 ** 4 },
  { left: 1, right: 7 },
  { left: 7, right: 1 },
  { left: 6, right: 300 },
  { left: 256, right: 256 },
]

test.each(small)('the permutation is bijective on %j', (halves) => {
  const size = halves.left * halves.right
  const images = createPermutation(secret, halves).range(0, size)
  expect(new Set(images).size).toBe(size)
  expect(Math.min(...images)).toBe(0)
  expect(Math.max(...images)).toBe(size - 1)
  for (let i = 0; i < 50 && i < size; i++) {
    expect(inverse(secret, images[i] ?? -1, halves)).toBe(i)
  }
})

test('on the code space it is invertible and stays in range', () => {
  fc.assert(
    fc.property(secrets, indices, (key, index) => {
      const [image = -1] = createPermutation(key).range(index, 1)
      expect(image).toBeGreaterThanOrEqual(0)
      expect(image).toBeLessThan(CODE_SPACE)
      expect(inverse(key, image, codeHalves)).toBe(index)
    }),
  )
})

test('100,000 consecutive indices have distinct, non-consecutive images', () => {
  const images = createPermutation(secret).range(123_456_789_000, 100_000)
  expect(new Set(images).size).toBe(100_000)
  const steps = images.slice(1).map((image, i) => Math.abs(image - (images[i] ?? 0)))
  expect(steps.filter((step) => step < CODE_SPACE / 10_000).length).toBeLessThan(100)
})

test('a range equals its concatenated subranges', () => {
  const permutation = createPermutation(secret)
  fc.assert(
    fc.property(indices, fc.nat({ max: 20 }), fc.nat({ max: 20 }), (start, one, more) => {
      fc.pre(start + one + more <= CODE_SPACE)
      const whole = permutation.range(start, one + more)
      const joined = [...permutation.range(start, one), ...permutation.range(start + one, more)]
      expect(whole).toEqual(joined)
    }),
  )
})

test('a secret that differs in one bit gives a different order', () => {
  fc.assert(
    fc.property(secrets, fc.nat({ max: SECRET_BYTES * 8 - 1 }), (key, bit) => {
      const other = Uint8Array.from(key)
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const images = createPermutation(key).range(0, 20)
      const others = createPermutation(other).range(0, 20)
      expect(others.filter((image, i) => image === images[i]).length).toBeLessThan(3)
    }),
  )
})

test('golden values: the code of an index never changes', () => {
  const permutation = createPermutation(secret)
  const codes = (start: number, count: number) => permutation.range(start, count).map(toBase62)
  expect(codes(0, 4)).toEqual(['AM9NRM6', 'yPwgfft', 'dZqlcDh', 'R7WhZTv'])
  expect(codes(64_000, 3)).toEqual(['r9NxRYl', 'SkU1d1S', 'CaTZLps'])
  expect(codes(CODE_SPACE - 4, 4)).toEqual(['dIfCzHJ', 'kr60UHa', 'g6DcUgt', 'RvZ8oWl'])
})

test('invalid secrets, halves and ranges are rejected', () => {
  expect(() => createPermutation(new Uint8Array(31))).toThrow(/32 bytes: it has 31/)
  expect(() => createPermutation(new Uint8Array(0))).toThrow(/32 bytes/)
  expect(() => createPermutation(secret, { left: 2 ** 24, right: 1 })).toThrow(/2\^24/)
  const permutation = createPermutation(secret)
  const bad = [
    [-1, 1],
    [CODE_SPACE, 1],
    [CODE_SPACE - 1, 2],
    [0.5, 1],
    [0, -1],
    [0, 0.5],
    [NaN, 1],
  ] as const
  for (const [start, count] of bad) expect(() => permutation.range(start, count)).toThrow(/Cannot/)
})
