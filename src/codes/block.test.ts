// Blocks: their content, no overlap, excluded codes; and packed codes.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { isReserved } from '../links/reserved.ts'
import { CODE_SPACE, GENERATED_LENGTH, toBase62 } from './base62.ts'
import {
  BLOCK_SIZE,
  type BlockId,
  mintBlock,
  packCodes,
  POOL_NUMBERS,
  SEQ_MAX,
  unpackCodes,
} from './block.ts'
import { isOffensive } from './offensive.ts'
import { createPermutation, type Permutation } from './permutation.ts'

const secret = Uint8Array.from({ length: 32 }, (_, i) => i)
const excludeNone = () => false
const ids = fc.record({
  poolNumber: fc.nat({ max: POOL_NUMBERS - 1 }),
  seq: fc.integer({ min: 1, max: SEQ_MAX }),
})

/** A permutation that records the requested ranges. */
function recordingPermutation(): {
  permutation: Permutation
  ranges: [start: number, end: number][]
} {
  const ranges: [number, number][] = []
  const range = (start: number, count: number) => {
    ranges.push([start, start + count])
    return Array.from({ length: count }, (_, i) => start + i)
  }
  return { permutation: { range }, ranges }
}

function rangeOf(id: BlockId): readonly [start: number, end: number] {
  const { permutation, ranges } = recordingPermutation()
  mintBlock(permutation, id, excludeNone)
  return ranges[0] ?? [-1, -1]
}

test('toBase62() returns seven base62 digits', () => {
  expect(toBase62(0)).toBe('0000000')
  expect(toBase62(61)).toBe('000000z')
  expect(toBase62(62)).toBe('0000010')
  expect(toBase62(CODE_SPACE - 1)).toBe('zzzzzzz')
  fc.assert(
    fc.property(fc.nat({ max: CODE_SPACE - 1 }), (value) => {
      const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
      const code = toBase62(value)
      expect(code).toHaveLength(GENERATED_LENGTH)
      expect(Array.from(code, (c) => digits.indexOf(c)).reduce((sum, d) => sum * 62 + d, 0)).toBe(
        value,
      )
    }),
  )
})

test('block seq of pool p has the indices of range number seq × 64 + p', () => {
  fc.assert(
    fc.property(ids, (id) => {
      const [start, end] = rangeOf(id)
      expect(start).toBe((id.seq * 64 + id.poolNumber) * 1000)
      expect(end - start).toBe(BLOCK_SIZE)
      expect(end).toBeLessThanOrEqual(CODE_SPACE)
    }),
  )
  expect(rangeOf({ poolNumber: 63, seq: SEQ_MAX })[1]).toBeLessThanOrEqual(CODE_SPACE)
})

test('two blocks have no index in common', () => {
  const near = fc.tuple(ids, fc.integer({ min: -2, max: 2 }), fc.nat({ max: 63 }))
  fc.assert(
    fc.property(near, ([one, step, poolNumber]) => {
      const other = { poolNumber, seq: one.seq + step }
      fc.pre(other.seq >= 1 && other.seq <= SEQ_MAX)
      fc.pre(other.seq !== one.seq || poolNumber !== one.poolNumber)
      const [[start, end], [otherStart, otherEnd]] = [rangeOf(one), rangeOf(other)]
      expect(end <= otherStart || otherEnd <= start).toBe(true)
    }),
  )
})

test('golden values: the codes of a block never change', () => {
  const codes = mintBlock(createPermutation(secret), { poolNumber: 0, seq: 1 }, excludeNone)
  expect(codes.slice(0, 3)).toEqual(['r9NxRYl', 'SkU1d1S', 'CaTZLps'])
  expect(codes).toHaveLength(999)
  expect(createHash('sha256').update(codes.join()).digest('hex')).toBe(
    '81b282c19c5f34d2eef6d7316e6d2fada9dbf0bdb6c2d7a5bc9633ea0e335518',
  )
})

test('a block is deterministic and has no reserved or offensive code', () => {
  for (const seq of [1, 2, SEQ_MAX]) {
    const mint = () => mintBlock(createPermutation(secret), { poolNumber: 5, seq }, isReserved)
    const codes = mint()
    expect(mint()).toEqual(codes)
    expect(new Set(codes).size).toBe(codes.length)
    expect(codes.length).toBeGreaterThan(BLOCK_SIZE - 20)
    expect(codes.filter((code) => isReserved(code) || isOffensive(code))).toEqual([])
  }
})

test('reserved and offensive codes of a range are excluded', () => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const valueOf = (code: string) =>
    Array.from(code).reduce((value, c) => value * 62 + digits.indexOf(c), 0)
  const given = [
    'abcdefg',
    'Metrics',
    'healthz',
    'v123456',
    'xxFuCkx',
    'sh1tsh1',
    '00A5500',
    'zzzzzzz',
  ]
  const permutation = { range: () => given.map(valueOf) }
  const codes = mintBlock(permutation, { poolNumber: 0, seq: 1 }, isReserved)
  expect(codes).toEqual(['abcdefg', 'zzzzzzz'])
})

test.each([
  ...['sexsexs', 'xxSEXxx', 'xx53Xxx', 'xsh1txx', 'xSlUtxx', 'xs1utxx', 'xsIutxx', 'N4z1xxx'],
  ...['xxKKKxx', 'xP0rnxx', 'c0ckxxx', 'xxxB1tch', 'xxWh0R3', 'xxx7wat', 'x7175xx', 'xxpu5sy'],
])('%j is offensive', (code) => {
  expect(isOffensive(code)).toBe(true)
})

test.each(['abcdefg', '0000000', '1234567', 'xFuxkxx', 'kkxkkxk', 'se_x', 'zzzzzzz'])(
  '%j is not offensive',
  (code) => {
    expect(isOffensive(code)).toBe(false)
  },
)

test('an invalid block is rejected', () => {
  const { permutation, ranges } = recordingPermutation()
  const bad = [
    ...[-1, 64, 0.5, NaN].map((poolNumber) => ({ poolNumber, seq: 1 })),
    ...[0, -1, SEQ_MAX + 1, 1.5, NaN].map((seq) => ({ poolNumber: 0, seq })),
  ]
  for (const id of bad) {
    expect(() => mintBlock(permutation, id, excludeNone)).toThrow(/Cannot mint/)
  }
  expect(ranges).toEqual([])
})

test('unpackCodes() reverses packCodes()', () => {
  const codes = fc.array(fc.nat({ max: CODE_SPACE - 1 }).map(toBase62))
  fc.assert(
    fc.property(codes, (given) => {
      expect(unpackCodes(packCodes(given))).toEqual(given)
    }),
  )
  expect(() => unpackCodes('abcdefgh')).toThrow(/8 characters/)
})
