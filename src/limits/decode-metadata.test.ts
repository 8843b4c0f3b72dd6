// The metadata of descriptors in protobuf's wire format: unknown fields, nulls and wrong lengths.
import { describe, expect, test } from '@jest/globals'
import { parseRules } from './parse-rules.ts'
import { renderFault } from './rule-fault.ts'
import { listRules } from './rule-tree.ts'

/** A field of bytes; `missing` is subtracted from its length. */
function field(tag: number, content: string | readonly Buffer[], missing = 0): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.concat(content)
  const length = bytes.length - missing
  const size = length < 128 ? [length] : [(length & 127) | 128, length >>> 7]
  return Buffer.concat([Buffer.from([tag, ...size]), bytes])
}

/** Field 9, a varint. */
const UNKNOWN = Buffer.from([72, 1])
const NULL = Buffer.from([8, 0])
const string = (content: string) => field(26, content)
const struct = (...entries: Buffer[]) => field(42, entries)
const list = (...items: Buffer[]) => field(50, items)
const item = (...value: Buffer[]) => field(10, value)
const entry = (key: string, ...value: Buffer[]) => field(10, [field(10, key), field(18, value)])

/** The result of a config whose only rule has metadata with these fields. */
function parse(...metadata: readonly Buffer[]) {
  const limit = field(26, [Buffer.from([8, 2, 16, 3])])
  const descriptor = field(26, [field(10, 'k'), limit, field(66, metadata)])
  const bytes = Buffer.concat([field(18, 's'), descriptor])
  const parsed = parseRules([{ index: 0, bytes }], { mergeDomains: false })
  if ('faults' in parsed) return parsed.faults.map(renderFault)
  return listRules(parsed.rules)[0]?.metadata
}

describe('unknown fields are ignored:', () => {
  test.each<[string, Buffer]>([
    ['before an entry', Buffer.concat([UNKNOWN, entry('a', string('x'))])],
    ['in an entry', field(10, [field(10, 'a'), UNKNOWN, field(18, [string('x')]), UNKNOWN])],
    ['after a value', entry('a', string('x'), UNKNOWN)],
    ['before a value', entry('a', UNKNOWN, string('x'))],
    [
      'of bytes, in an entry',
      field(10, [field(10, 'a'), field(74, 'y'), field(18, [string('x')])]),
    ],
  ])('%s', (_, bytes) => {
    expect(parse(bytes)).toEqual({ a: 'x' })
  })
  test('in a list', () => {
    const items = list(UNKNOWN, item(string('x')), UNKNOWN, item(string('y'), UNKNOWN))
    expect(parse(entry('a', items))).toEqual({ a: ['x', 'y'] })
  })
})

describe('the last value counts:', () => {
  test.each<[string, readonly Buffer[], unknown]>([
    ['null', [string('x'), NULL], null],
    ['a string after null', [NULL, string('x')], 'x'],
    ['null after an object', [struct(entry('b', string('x'))), NULL], null],
    ['a list after an object', [struct(entry('b', string('x'))), list(item(string('y')))], ['y']],
    ['an object after a list', [list(item(string('y'))), struct(entry('b', NULL))], { b: null }],
    ['a value without content', [], null],
  ])('%s', (_, value, expected) => {
    expect(parse(entry('a', ...value))).toEqual({ a: expected })
  })
  test('of an entry without a value, null', () => {
    expect(parse(field(10, [field(10, 'a')]))).toEqual({ a: null })
  })
  test('the value of an item of a list is null by default', () => {
    expect(parse(entry('a', list(item(), item(string('x')))))).toEqual({ a: [null, 'x'] })
  })
})

describe('a field that is longer than its message is a fault:', () => {
  const longer = (tag: number, ...content: Buffer[]) => field(tag, content, 1)
  test.each<[string, readonly Buffer[]]>([
    ['in an entry', [longer(10, field(10, 'a'), field(18, [string('x')])), UNKNOWN]],
    [
      'in a value', // `H` and 1 are also a field of the entry
      [field(10, [field(10, 'a'), longer(18, string('xH')), Buffer.from([1])])],
    ],
    ['in a list', [entry('a', longer(50, item(string('xy'))), UNKNOWN)]],
    ['in an item', [entry('a', list(longer(10, string('xy')), UNKNOWN))]],
    ['in an object', [entry('a', longer(42, entry('b', string('xy'))), UNKNOWN)]],
  ])('%s', (_, metadata) => {
    expect(parse(...metadata)).toEqual([expect.stringContaining('extends beyond its message')])
  })
})
