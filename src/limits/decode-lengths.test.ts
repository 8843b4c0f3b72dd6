// RateLimitConfigs with fields that the messages do not have, and with lengths that do not fit.
import { describe, expect, test } from '@jest/globals'
import { CURTAIL_KEY } from '../protobuf/config-tags.ts'
import { parseRules } from './parse-rules.ts'
import { renderFault } from './rule-fault.ts'
import { listRules } from './rule-tree.ts'

const UNKNOWN = Buffer.from([72, 1]) // field 9, a varint
/** `unit: MINUTE, requests_per_unit: 3`. */
const LIMIT = Buffer.from([8, 2, 16, 3])

const parse = (bytes: Buffer) => parseRules([{ index: 0, bytes }], { mergeDomains: false })

function faultsOf(bytes: Buffer): readonly string[] {
  const parsed = parse(bytes)
  return 'faults' in parsed ? parsed.faults.map(renderFault) : []
}

/** A field of bytes; `missing` is subtracted from its length. */
function field(tag: number, content: string | readonly Buffer[], missing = 0): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag, bytes.length - missing]), bytes])
}

interface Contents {
  readonly descriptor?: readonly Buffer[]
  readonly limit?: readonly Buffer[]
  readonly replaces?: readonly Buffer[]
}

/** A config with one rule, and with these fields at the end of its messages. */
function configOf({ descriptor = [], limit = [], replaces = [] }: Contents): Buffer {
  const replaced = field(42, [field(10, 'other'), ...replaces])
  return Buffer.concat([
    field(18, 's'),
    field(26, [field(10, 'k'), field(26, [LIMIT, replaced, ...limit]), ...descriptor]),
  ])
}

describe('an unknown field is ignored, with a warning that has its path:', () => {
  const at = 'resources[0]: descriptors[0]'
  test.each<[string, Contents, string]>([
    ['in a descriptor', { descriptor: [UNKNOWN] }, at],
    ['in a limit', { limit: [UNKNOWN] }, `${at}.rate_limit`],
    ['in a replaced limit', { replaces: [UNKNOWN] }, `${at}.rate_limit.replaces[0]`],
  ])('%s', (_, contents, place) => {
    const parsed = parse(configOf(contents))
    const found = 'rules' in parsed ? listRules(parsed.rules) : []
    expect(found).toMatchObject([{ limit: { requests: 3 }, replaces: ['other'] }])
    expect('warnings' in parsed && parsed.warnings.map(renderFault)).toEqual([
      `${place}: field 9 is unknown: it is ignored`,
    ])
  })
})

describe('a field that is longer than its message is a fault:', () => {
  const string = (text: string) => field(26, text)
  test.each([
    [
      'in a descriptor', // `H` and 1 are also a field of the config
      Buffer.concat([field(26, [field(10, 'k'), field(18, 'H')], 1), Buffer.from([1])]),
    ],
    ['in a limit', field(26, [field(10, 'k'), field(26, [LIMIT, field(34, 'name')], 1)])],
    [
      'in a replaced limit',
      field(26, [field(10, 'k'), field(26, [LIMIT, field(42, [field(10, 'other')], 1)])]),
    ],
    [
      'in metadata',
      field(26, [
        field(10, 'k'),
        field(66, [field(10, [field(10, 'name'), field(18, [string('text')])])], 1),
      ]),
    ],
  ])('%s', (_, descriptor) => {
    const config = Buffer.concat([field(18, 's'), descriptor])
    expect(faultsOf(config)).toEqual([
      expect.stringMatching(/^resources\[0\]: error loading config: .*extends beyond its message/),
    ])
  })
})

test('faults name a resource by at most 200 characters of its name', () => {
  const named = (length: number) =>
    Buffer.concat([
      Buffer.from([10, (length & 127) | 128, length >>> 7]),
      Buffer.from('n'.repeat(length)),
    ])
  const placeOf = (length: number) => faultsOf(named(length))[0]?.split(':')[0]
  expect(placeOf(200)).toBe(`resource "${'n'.repeat(200)}"`)
  expect(placeOf(201)).toBe(`resource "${'n'.repeat(200)}"`)
})

test('an unlimited limit must not have a unit', () => {
  const limitOf = (...bytes: number[]) =>
    Buffer.concat([field(18, 's'), field(26, [field(10, 'k'), field(26, [Buffer.from(bytes)])])])
  expect(faultsOf(limitOf(24, 1, 8, 2))).toEqual([
    expect.stringContaining('descriptors[0].rate_limit: '),
  ])
  expect(faultsOf(limitOf(24, 1))).toEqual([])
})

test(`only the key ${CURTAIL_KEY} of the metadata has fields of rule files`, () => {
  const entry = field(10, [field(10, 'hashed'), field(18, [Buffer.from([32, 1])])])
  const config = configOf({ descriptor: [field(66, [entry])] })
  const parsed = parse(config)
  const [rule] = 'rules' in parsed ? listRules(parsed.rules) : []
  expect(rule?.metadata).toEqual({ hashed: true })
})
