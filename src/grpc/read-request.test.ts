// The parser accepts what protobufjs encodes, in every form that protobuf allows, and rejects all
// other bytes.
import { describe, expect, test } from '@jest/globals'
import { loadSync } from '@grpc/proto-loader'
import type { ServiceDefinition } from '@grpc/grpc-js'
import fc from 'fast-check'
import { units } from '../limits/descriptor.ts'
import { LimitRequestError } from '../limits/verdict.ts'
import { readRequest } from './read-request.ts'

const api = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [new URL('./proto', import.meta.url).pathname],
})
const { ShouldRateLimit: method } = api[
  'envoy.service.ratelimit.v3.RateLimitService'
] as ServiceDefinition
const encode = (request: object) => method?.requestSerialize(request) ?? Buffer.alloc(0)

const unitNames = Object.keys(units) as (keyof typeof units)[]
const UINT32 = 2 ** 32 - 1

const entry = fc.record({ key: fc.string({ unit: 'grapheme' }), value: fc.string() })
const descriptor = fc.record({
  entries: fc.array(entry, { maxLength: 5 }),
  limit: fc.option(
    fc.record({
      requestsPerUnit: fc.integer({ min: 0, max: UINT32 }),
      unit: fc.constantFrom(...unitNames),
    }),
    { nil: undefined },
  ),
  hits: fc.option(fc.integer({ min: 0, max: UINT32 }), { nil: undefined }),
  isNegative: fc.boolean(),
})
const request = fc.record({
  domain: fc.string({ unit: 'binary' }).map((string) => string.toWellFormed()),
  descriptors: fc.array(descriptor, { maxLength: 6 }),
  hitsAddend: fc.integer({ min: 0, max: UINT32 }),
})

const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]
const delimitedField = (field: number, ...value: number[]) => [
  ...varint(BigInt(field * 8 + 2)),
  ...varint(BigInt(value.length)),
  ...value,
]
const varintField = (field: number, value: bigint) => [
  ...varint(BigInt(field * 8)),
  ...varint(value),
]
const stringField = (field: number, value: string) => delimitedField(field, ...Buffer.from(value))
const read = (...fields: number[][]) => readRequest(Buffer.from(fields.flat()))
const fault = (...fields: number[][]) => {
  try {
    read(...fields)
  } catch (error) {
    if (error instanceof LimitRequestError) return error.message
    throw error
  }
  throw new Error('the request was parsed')
}

test('requests encoded by protobufjs are parsed', () => {
  fc.assert(
    fc.property(request, ({ domain, descriptors, hitsAddend }) => {
      const bytes = encode({
        domain,
        hitsAddend,
        descriptors: descriptors.map(({ entries, limit, hits, isNegative }) => ({
          entries,
          limit,
          hitsAddend: hits === undefined ? undefined : { value: hits },
          isNegativeHits: isNegative,
        })),
      })
      const hitsEach = Math.max(1, hitsAddend)
      expect(readRequest(bytes)).toEqual({
        domain,
        hits: hitsEach,
        descriptors: descriptors.map(({ entries, limit, hits, isNegative }) => ({
          entries,
          override: limit,
          hits: isNegative ? 0 - (hits ?? hitsEach) : hits,
        })),
      })
    }),
    { numRuns: 500 },
  )
})

test('a large message is parsed like a small one, with strings of all kinds', () => {
  const string = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: 'grapheme' }))
  const entries = fc.array(fc.record({ key: string, value: string }), { maxLength: 30 })
  const some = fc.array(fc.record({ entries }), { maxLength: 3 })
  fc.assert(
    fc.property(some, fc.constantFrom('e', 'é'), some, (before, letter, after) => {
      const padding = { entries: [{ key: 'padding', value: letter.repeat(5000) }] }
      const descriptors = [...before, padding, ...after]
      expect(readRequest(encode({ domain: 'd', descriptors })).descriptors).toEqual(descriptors)
    }),
  )
  const notUtf8 = delimitedField(
    2,
    ...delimitedField(1, ...delimitedField(1, 0xff), ...stringField(2, 'x'.repeat(5000))),
  )
  expect(fault(notUtf8)).toContain('a string is not UTF-8')
})

describe('fields', () => {
  const validFields = [
    stringField(1, 'd'),
    delimitedField(2, ...delimitedField(1, ...stringField(1, 'k'), ...stringField(2, 'v'))),
    varintField(3, 7n),
  ]
  const expected = {
    domain: 'd',
    hits: 7,
    descriptors: [{ entries: [{ key: 'k', value: 'v' }] }],
  }

  test('are accepted in any order', () => {
    expect(read(...validFields.toReversed())).toEqual(expected)
  })

  test('with an unknown number are skipped, whatever their type', () => {
    const unknown = [
      varintField(9, 2n ** 64n - 1n),
      delimitedField(1000, 1, 2, 3),
      [9 * 8 + 1, 1, 2, 3, 4, 5, 6, 7, 8],
      [9 * 8 + 5, 1, 2, 3, 4],
      [9 * 8 + 3, ...varintField(1, 5n), 2 * 8 + 3, 2 * 8 + 4, 9 * 8 + 4], // groups
    ]
    expect(read(...unknown, ...validFields, ...unknown)).toEqual(expected)
    expect(
      read(
        stringField(1, 'd'),
        varintField(3, 7n),
        delimitedField(2, ...unknown.flat(), ...(validFields[1] ?? []).slice(2)),
      ),
    ).toEqual(expected)
  })

  test('with a known number but another wire type are skipped, too', () => {
    expect(
      read(varintField(1, 5n), varintField(2, 5n), stringField(3, 'x'), ...validFields),
    ).toEqual(expected)
  })

  test('may occur more than once: the last one wins, and messages merge', () => {
    const limits = [
      delimitedField(2, ...varintField(1, 5n)),
      delimitedField(2, ...varintField(2, 3n)),
      delimitedField(2),
    ]
    const hits = [delimitedField(3, ...varintField(1, 4n)), delimitedField(3)]
    expect(
      read(
        stringField(1, 'x'),
        stringField(1, 'd'),
        delimitedField(2, ...limits.flat(), ...hits.flat()),
        varintField(3, 2n),
      ),
    ).toEqual({
      domain: 'd',
      hits: 2,
      descriptors: [{ entries: [], override: { requestsPerUnit: 5, unit: 'HOUR' }, hits: 4 }],
    })
  })

  test('may have varints that are longer than necessary, or wider than their type', () => {
    const long = [24, 0x87, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]
    expect(read(stringField(1, 'd'), long).hits).toBe(7)
    expect(read(stringField(1, 'd'), varintField(3, 2n ** 32n + 5n)).hits).toBe(5)
    const unit = delimitedField(2, ...varintField(2, 2n ** 32n + 1n))
    expect(read(delimitedField(2, ...unit)).descriptors[0]?.override?.unit).toBe('SECOND')
  })
})

describe('hits', () => {
  const hits = (...of: number[][]) =>
    read(delimitedField(2, ...of.flat()), varintField(3, 9n)).descriptors[0]?.hits

  test('of a descriptor take precedence over those of the request, even if they are 0', () => {
    expect(hits(delimitedField(3, ...varintField(1, 3n)))).toBe(3)
    expect(hits(delimitedField(3))).toBe(0)
    expect(hits()).toBeUndefined()
  })

  test('beyond 32 bits count as 2^32 - 1', () => {
    expect(hits(delimitedField(3, ...varintField(1, 2n ** 64n - 1n)))).toBe(UINT32)
    expect(hits(delimitedField(3, ...varintField(1, 2n ** 32n)))).toBe(UINT32)
    expect(read(varintField(3, 2n ** 64n - 1n)).hits).toBe(UINT32)
  })

  test('are negative for a refund, and default to those of the request', () => {
    expect(hits(delimitedField(3, ...varintField(1, 3n)), varintField(4, 1n))).toBe(-3)
    expect(hits(delimitedField(3, ...varintField(1, 2n ** 64n - 1n)), varintField(4, 1n))).toBe(
      -UINT32,
    )
    expect(hits(varintField(4, 2n ** 40n))).toBe(-9)
    expect(Object.is(hits(delimitedField(3), varintField(4, 1n)), 0)).toBe(true)
  })

  test('of the request are at least 1', () => {
    expect(read(stringField(1, 'd')).hits).toBe(1)
  })
})

describe('invalid and malformed requests', () => {
  const limit = (...of: number[]) => delimitedField(2, ...delimitedField(2, ...of))

  test('a limit with an unknown unit is rejected', () => {
    const sentence = 'the unit of a descriptor’s limit must be one of 1 SECOND, 2 MINUTE'
    expect(fault(limit(...varintField(1, 5n)))).toContain(sentence)
    expect(fault(limit())).toContain('it is 0')
    expect(fault(limit(...varintField(2, 8n)))).toContain('it is 8')
    expect(fault(limit(...varintField(2, 2n ** 64n - 1n)))).toContain('it is -1')
  })

  test('more than 100 descriptors, or 100 entries in a descriptor, are rejected', () => {
    const many = (count: number) => Array.from({ length: count }, () => delimitedField(2))
    expect(read(...many(100)).descriptors).toHaveLength(100)
    expect(fault(...many(101))).toBe('a request may have at most 100 descriptors')
    expect(fault(...many(10_000))).toBe('a request may have at most 100 descriptors')
    const entries = (count: number) => Array.from({ length: count }, () => delimitedField(1)).flat()
    expect(read(delimitedField(2, ...entries(100))).descriptors[0]?.entries).toHaveLength(100)
    expect(fault(delimitedField(2, ...entries(101)))).toBe(
      'a descriptor may have at most 100 entries',
    )
  })

  const malformed: Record<string, number[]> = {
    'a string beyond the end': [10, 5, 97],
    'a string that is not UTF-8': [10, 2, 0xc3, 0x28],
    'a surrogate in UTF-8': [10, 3, 0xed, 0xa0, 0x80],
    'a truncated varint': [24, 0x80],
    'a varint of more than 64 bits': [24, ...Array.from({ length: 10 }, () => 0xff), 1],
    'a tenth byte of more than one bit': [24, ...Array.from({ length: 9 }, () => 0xff), 2],
    'a missing varint': [24],
    'a field number of 0': [2, 0],
    'a tag of more than 32 bits': [...varint(2n ** 33n + 8n), 0],
    'wire type 6': [14, 0],
    'wire type 7': [15, 0],
    'the end of an unopened group': [12],
    'an unclosed group': [11, 16, 1],
    'a group closed by another': [11, 20],
    'deeply nested groups': Array.from({ length: 200 }, () => 11),
    'a truncated fixed64': [9, 1, 2, 3],
    'a descriptor whose entry reaches beyond it': [18, 2, 10, 2, 10, 0],
    'a length of more than 32 bits': [10, ...varint(2n ** 40n)],
  }
  test.each(Object.entries(malformed))('%s is rejected', (_, bytes) => {
    expect(fault(bytes)).toMatch(/^the message is not a valid RateLimitRequest: .* \(byte \d+\)$/)
  })

  test('a replacement character that the client sent is accepted', () => {
    expect(read(stringField(1, 'a\ufffd')).domain).toBe('a\ufffd')
    expect(read(stringField(1, '\ufeffa')).domain).toBe('\ufeffa')
  })
})

test('arbitrary bytes are parsed or rejected', () => {
  const valid = encode({
    domain: 'edge',
    hitsAddend: 3,
    descriptors: [
      { entries: [{ key: 'k', value: 'vé' }], limit: { requestsPerUnit: 5, unit: 2 } },
      { entries: [{ key: 'k' }], hitsAddend: { value: 300 }, isNegativeHits: true },
    ],
  })
  const mutated = fc
    .array(fc.record({ at: fc.nat(valid.length - 1), byte: fc.nat(255) }), { maxLength: 8 })
    .map((changes) => {
      const bytes = Buffer.from(valid)
      for (const { at, byte } of changes) bytes[at] = byte
      return bytes
    })
  const bytes = fc.oneof(
    mutated,
    fc.uint8Array({ maxLength: 60 }).map((random) => Buffer.from(random)),
    fc.nat(valid.length).map((length) => valid.subarray(0, length)),
  )
  fc.assert(
    fc.property(bytes, (given) => {
      try {
        const { hits, domain, descriptors } = readRequest(given)
        expect(hits).toBeGreaterThanOrEqual(1)
        expect(domain.isWellFormed()).toBe(true)
        for (const one of descriptors) expect(Math.abs(one.hits ?? 0)).toBeLessThanOrEqual(UINT32)
      } catch (error) {
        expect(error).toBeInstanceOf(LimitRequestError)
      }
    }),
    { numRuns: 5000 },
  )
})
