// Plain YAML scalars have the same type and value as in the parser of envoyproxy/ratelimit.
import { expect, test } from '@jest/globals'
import { resolvePlain } from './parse-scalar.ts'

test.each([
  ['yes', 'bool', true],
  ['On', 'bool', true],
  ['n', 'bool', false],
  ['FALSE', 'bool', false],
  ['tRue', 'string', undefined],
  ['', 'null', undefined],
  ['~', 'null', undefined],
  ['Null', 'null', undefined],
  ['5', 'int', 5],
  ['-0', 'int', 0],
  ['012', 'int', 10],
  ['0o12', 'int', 10],
  ['0x1F', 'int', 31],
  ['0b101', 'int', 5],
  ['1_000', 'int', 1000],
  ['9223372036854775807', 'int', 2 ** 63],
  ['-9223372036854775808', 'int', -(2 ** 63)],
  ['9223372036854775808', 'float', 2 ** 63],
  ['-9223372036854775809', 'float', -(2 ** 63)],
  ['089', 'float', 89],
  ['1.5', 'float', 1.5],
  ['.5', 'float', 0.5],
  ['1e3', 'float', 1000],
  ['-.inf', 'float', -Infinity],
  ['1:30', 'string', undefined],
  ['1.2.3.4', 'string', undefined],
  ['10/24', 'string', undefined],
  ['+', 'string', undefined],
  ['2026-11-22', 'time', undefined],
  ['2026-11-22T04:00:00Z', 'time', undefined],
  ['2026-11-22x', 'string', undefined],
  ['constructor', 'string', undefined],
])('%j is a %s', (text, kind, value) => {
  const { kind: found, value: read, text: kept } = resolvePlain(text)
  expect([found, Object.is(read, -0) ? 0 : read, kept]).toEqual([kind, value, text])
})

test('a megabyte of digits is a string, without parsing a number', () => {
  expect(resolvePlain('9'.repeat(1_000_000)).kind).toBe('string')
})
