// HPACK: the exact bounds of the dynamic table, the header list and integers, the cost of a block,
// and the memory that the table acquires.
import { describe, expect, test } from '@jest/globals'
import { countedBudget } from '../../../test/kit/ratelimit/http2-connection.ts'
import { errorCodes } from './frames.ts'
import { HpackDecoder } from './hpack-decoder.ts'

const LIST_BYTES_MAX = 16_384
const NEWEST = 0xbe
const hex = (digits: string) => Buffer.from(digits.replaceAll(' ', ''), 'hex')
const codeOf = (code: number) => expect.objectContaining({ code })

/** An integer after its prefix, which is filled. */
function more(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest >>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

function encode(value: string): Buffer {
  const { length } = value
  const prefix = length < 127 ? [length] : [127, ...more(length - 127)]
  return Buffer.concat([Buffer.from(prefix), Buffer.from(value)])
}

/** A field that is added to the table; it has `bytes` bytes in tables and lists. */
function indexed(name: string, bytes: number): Buffer {
  const value = 'x'.repeat(bytes - 32 - name.length)
  return Buffer.concat([Buffer.from([0x40]), encode(name), encode(value)])
}

function openDecoder(max = Infinity) {
  const budget = countedBudget(max)
  const hpack = new HpackDecoder(budget)
  return {
    ...{ hpack, budget },
    read: (...blocks: readonly Buffer[]) =>
      hpack.decode(Buffer.concat(blocks), LIST_BYTES_MAX)?.map(({ name }) => name),
  }
}

describe('the dynamic table', () => {
  const all = (count: number) => Buffer.from(Array.from({ length: count }, (_, i) => NEWEST + i))

  test('has exactly 4096 bytes; the next field evicts the oldest', () => {
    const { read } = openDecoder()
    read(indexed('a', 1000), indexed('b', 1000), indexed('c', 1000), indexed('d', 1096))
    expect(read(all(4))).toEqual(['d', 'c', 'b', 'a'])
    read(indexed('e', 34))
    expect(read(all(4))).toEqual(['e', 'd', 'c', 'b'])
    expect(() => read(hex('c2'))).toThrow(codeOf(errorCodes.compression))
  })

  test('may contain one field of 4096 bytes, and is cleared by a larger field', () => {
    const { read, budget } = openDecoder()
    read(indexed('a', 34), indexed('b', 4096))
    expect(read(all(1))).toEqual(['b'])
    expect(() => read(all(2))).toThrow(codeOf(errorCodes.compression))
    expect(read(indexed('c', 4097))).toEqual(['c'])
    expect(budget.held).toBe(0)
    expect(() => read(all(1))).toThrow(codeOf(errorCodes.compression))
  })

  test('is limited by the client’s size updates, of at most 4096 bytes', () => {
    const { read } = openDecoder()
    read(indexed('a', 50), indexed('b', 50))
    read(hex('3f 45')) // 31 + 69 = 100 bytes
    expect(read(all(2))).toEqual(['b', 'a'])
    read(hex('3f 44')) // 99 bytes
    expect(read(all(1))).toEqual(['b'])
    expect(() => read(all(2))).toThrow(codeOf(errorCodes.compression))
    const { read: readOther } = openDecoder()
    expect(readOther(hex('3f e1 1f'))).toEqual([]) // 4096 bytes
    expect(() => readOther(hex('3f e2 1f'))).toThrow(codeOf(errorCodes.compression))
  })

  test('accepts several size updates before the first field, and none after it', () => {
    const { read } = openDecoder()
    expect(read(hex('20 3f e1 1f 82'))).toEqual([':method'])
    expect(() => read(hex('82 20'))).toThrow(codeOf(errorCodes.compression))
  })

  test('has the last static field at 61 and its newest field at 62', () => {
    const { read } = openDecoder()
    expect(read(hex('bd'))).toEqual(['www-authenticate'])
    read(indexed('a', 40))
    expect(read(hex('be'))).toEqual(['a'])
    expect(read(hex('7e 01 79'))).toEqual(['a']) // its name, with another value
    expect(read(all(2))).toEqual(['a', 'a'])
    for (const index of ['80', 'c0']) {
      expect(() => read(hex(index))).toThrow(codeOf(errorCodes.compression))
    }
  })
})

describe('the memory of the table', () => {
  test('is three times its size, and is released by evictions and by the close', () => {
    const { hpack, read, budget } = openDecoder()
    read(indexed('a', 100), indexed('b', 50))
    expect(budget.held).toBe(3 * 150)
    read(hex('be'))
    expect(budget.held).toBe(3 * 150)
    read(hex('3f 21'))
    expect(budget.held).toBe(3 * 50)
    for (let times = 0; times < 2; times += 1) hpack.clear()
    expect(budget.held).toBe(0)
  })

  test('that the budget does not allow closes the connection', () => {
    const exact = openDecoder(3 * 100)
    expect(exact.read(indexed('a', 100))).toEqual(['a'])
    const { read, hpack, budget } = openDecoder(3 * 100 - 1)
    expect(() => read(indexed('a', 100))).toThrow(codeOf(errorCodes.enhanceYourCalm))
    hpack.clear()
    expect(budget.held).toBe(0)
  })

  test('needs no budget if there is none', () => {
    const hpack = new HpackDecoder()
    hpack.decode(indexed('a', 100), LIST_BYTES_MAX)
    expect(hpack.decode(hex('be'), LIST_BYTES_MAX)).toMatchObject([{ name: 'a', bytes: 100 }])
    hpack.clear()
  })
})

test('a header list of exactly the maximum is returned', () => {
  const block = Buffer.concat([indexed('a', 100), hex('be be')])
  const decode = (bytesMax: number) => new HpackDecoder().decode(block, bytesMax)?.length
  expect([decode(300), decode(299), decode(0)]).toEqual([3, undefined, undefined])
  expect(new HpackDecoder().decode(Buffer.alloc(0), 0)).toEqual([])
})

test('the cost of a block is 1 for each field, table size update and eviction', () => {
  const { hpack, read } = openDecoder()
  const costOf = (...blocks: readonly Buffer[]) => {
    read(...blocks)
    return hpack.cost
  }
  expect(costOf(Buffer.alloc(0))).toBe(0)
  expect(costOf(indexed('a', 100), indexed('b', 100), hex('82 83'))).toBe(4)
  expect(costOf(hex('20'))).toBe(1 + 2)
  expect(costOf(hex('82'))).toBe(1)
})

test('a field and its references are one object', () => {
  const { hpack } = openDecoder()
  const [field] = hpack.decode(indexed('a', 40), LIST_BYTES_MAX) ?? []
  const references = hpack.decode(hex('be be'), LIST_BYTES_MAX)
  expect(references?.every((one) => one === field)).toBe(true)
})

describe('an integer', () => {
  const literal = (length: string, bytes: number) =>
    Buffer.concat([hex(`00 01 61 7f ${length}`), Buffer.alloc(bytes, 'x')])
  const lengthOf = (block: Buffer) => new HpackDecoder().decode(block, 1e9)?.[0]?.value.length

  test.each([
    ['00', 127],
    ['01', 128],
    ['7f', 254],
    ['80 01', 255],
    ['81 00', 128],
    ['80 80 01', 127 + 16_384],
    ['81 80 80 00', 128],
  ])('%s after a full prefix of 7 bits is decoded', (bytes, length) => {
    expect(lengthOf(literal(bytes, length))).toBe(length)
  })

  test('of up to 2^24 is decoded, a larger one is rejected', () => {
    const max = literal('81 ff ff 07', 2 ** 24) // 127 + 2^24 - 127
    expect(lengthOf(max)).toBe(2 ** 24)
    expect(() => lengthOf(literal('82 ff ff 07', 2 ** 24 + 1))).toThrow('integer is too large')
  })

  test('with too many bytes of zeros is rejected', () => {
    expect(() => lengthOf(literal('80 80 80 80 00', 127))).toThrow('integer is too large')
  })
})

test('a string ends at the end of its block, or before it', () => {
  const { read } = openDecoder()
  expect(read(hex('00 01 61 01 62'))).toEqual(['a'])
  expect(read(hex('00 01 61 00'))).toEqual(['a'])
  for (const block of ['00', '00 01', '00 01 61', '00 01 61 01', '00 01 61 02 62']) {
    expect(() => read(hex(block))).toThrow(codeOf(errorCodes.compression))
  }
})
