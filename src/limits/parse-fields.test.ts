// Fields of a mapping: their values, and the faults of values that are invalid.
import { describe, expect, test } from '@jest/globals'
import {
  type Fields,
  lineOf,
  readCount,
  readFlag,
  readMaps,
  readMetadata,
  readOptionalFlag,
  readString,
} from './parse-fields.ts'
import { parseYaml } from './parse-yaml.ts'
import { createDiagnostics, renderFault } from './rule-fault.ts'

const loading = 'error loading config file:'
const parsing = 'error parsing metadata:'

/** What `read` returns for a file, or the faults that it reports. */
function read(text: string, reader: (fields: Fields) => unknown): unknown {
  const all = createDiagnostics()
  const diagnostics = all.of('f')
  const map = parseYaml(text, diagnostics)
  if (map?.kind !== 'map') throw new Error(`no mapping: ${text}`)
  const value = reader({ map, diagnostics })
  const faults = all.faults().map(renderFault)
  return faults.length > 0 ? faults : value
}

const string = (text: string) => read(text, (fields) => readString(fields, 'a'))
const metadata = (text: string) => read(text, readMetadata)

test.each([
  ['x: 1\na: b c', { text: 'b c', line: 2 }],
  ['x: 1\na: 012', { text: '012', line: 2 }],
  ['x: 1\na: yes', { text: 'yes', line: 2 }],
  ['x: 1\na: ~', { text: '', line: 1 }],
  ['\nx: 1', { text: '', line: 2 }],
  ['x: 1\na: 1.5', { text: '', line: 2 }],
  ['x: 1\na: 2026-11-22', { text: '', line: 2 }],
  ['5: x\na: b', { text: 'b', line: 2 }],
  ['x: 1\na: []', [`f:2: ${loading} a must be a string: it is a list`]],
  ['x: 1\na: {}', [`f:2: ${loading} a must be a string: it is a mapping`]],
])('readString() of %j', (text, expected) => {
  expect(string(text)).toEqual(expected)
})

test('readString() keeps any characters, at any length', () => {
  for (const length of [12, 13, 1000]) {
    const text = 'é'.repeat(length)
    expect(string(`a: ${text}`)).toEqual({ text, line: 1 })
    expect(string(`a: ${text}\ud800`)).toEqual({ text: `${text}\ud800`, line: 1 })
  }
})

test.each([
  ['a: true', true, true],
  ['a: off', false, false],
  ['a: ~', undefined, false],
  ['b: true', undefined, false],
])('readOptionalFlag() and readFlag() of %j', (text, optional, flag) => {
  expect(read(text, (fields) => readOptionalFlag(fields, 'a'))).toBe(optional)
  expect(read(text, (fields) => readFlag(fields, 'a'))).toBe(flag)
})

test.each([
  ['a: "true"', `a string 'true'`],
  ['a: 1', `a number '1'`],
  ['a: 1.5', `a number '1.5'`],
  ['a: 2026-11-22', `the timestamp '2026-11-22'`],
  ['a: []', 'a list'],
])('a flag must not be %j', (text, shown) => {
  const fault = `f:1: ${loading} a must be true or false: it is ${shown}`
  expect(read(text, (fields) => readFlag(fields, 'a'))).toEqual([fault])
})

describe('readCount()', () => {
  const count = (text: string) => read(text, (fields) => readCount(fields, 'a', { min: 2, max: 5 }))
  const fault = `f:1: ${loading} a must be a whole number from 2 to 5: it is`
  test.each([
    ['a: 2', 2],
    ['a: 5', 5],
    ['b: 5', undefined],
    ['a: 1', [`${fault} a number '1'`]],
    ['a: 6', [`${fault} a number '6'`]],
    ['a: 2.5', [`${fault} a number '2.5'`]],
    ['a: "3"', [`${fault} a string '3'`]],
    ['a: true', [`${fault} the boolean 'true'`]],
  ])('of %j', (text, expected) => {
    expect(count(text)).toEqual(expected)
  })
})

test('readMaps() returns the mappings of a list', () => {
  const maps = (text: string) =>
    read(text, (fields) => readMaps(fields, 'a').map(({ line }) => line))
  expect(maps('a:\n- {}\n- 5\n- b: c')).toEqual([2, 4])
  expect(maps('b: []')).toEqual([])
  expect(maps('a: {}')).toEqual([`f:1: ${loading} a must be a list: it is a mapping`])
})

test('lineOf() returns the line of a field, or that of its mapping', () => {
  expect(read('\nx: 1\na: b', (fields) => [lineOf(fields, 'a'), lineOf(fields, 'c')])).toEqual([
    3, 2,
  ])
})

describe('readMetadata()', () => {
  const list = (size: number) =>
    `metadata: {l: [${Array.from({ length: size }).fill(1).join(', ')}]}`
  test.each([
    ['absent', 'a: b', undefined],
    ['empty', 'metadata: {}', undefined],
    [
      'of all kinds',
      'metadata: {s: text, t: 2026-11-22, y: yes, n: 5, f: 0.5, z: ~, l: [1, {m: x}], 7: k}',
      {
        ...{ s: 'text', t: '2026-11-22', y: true, n: 5, f: 0.5 },
        ...{ z: null, l: [1, { m: 'x' }], 7: 'k' },
      },
    ],
    ['no mapping', 'metadata: []', [`f:1: ${loading} metadata must be a mapping: it is a list`]],
    ['a key', 'metadata: {x: {? [a] : b}}', [`f:1: ${parsing} a key must be a string`]],
    ['infinite', 'metadata: {x: .inf}', [`f:1: ${parsing} '.inf' is not a JSON number`]],
    [
      'too large',
      list(1000), // and the list itself
      [`f:1: ${parsing} metadata must have at most 1000 values: it has more`],
    ],
  ])('%s', (_, text, expected) => {
    expect(metadata(text)).toEqual(expected)
  })

  test('may have 1000 values, with the items of aliases', () => {
    expect(metadata(list(999))).toEqual({ l: Array.from({ length: 999 }).fill(1) })
    const items = Array.from({ length: 250 }).fill('*x').join()
    const aliases = `metadata: {x: &x [1, 2, 3], l: [${items}]}`
    expect(metadata(aliases)).toEqual([
      `f:1: ${parsing} metadata must have at most 1000 values: it has more`,
    ])
  })
})
