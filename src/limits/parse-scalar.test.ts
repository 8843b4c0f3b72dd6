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
  ['-.INF', 'float', -Infinity],
  ['+.Inf', 'float', Infinity],
  ['.NAN', 'float', NaN],
  ['-1.5', 'float', -1.5],
  ['+1.5', 'float', 1.5],
  ['.55', 'float', 0.55],
  ['1.55', 'float', 1.55],
  ['1.', 'float', 1],
  ['1e10', 'float', 1e10],
  ['1e-5', 'float', 1e-5],
  ['1E+5', 'float', 1e5],
  ['1e', 'string', undefined],
  ['1.5x', 'string', undefined],
  ['1:30', 'string', undefined],
  ['1.2.3.4', 'string', undefined],
  ['10/24', 'string', undefined],
  ['+', 'string', undefined],
  ['2026-11-22', 'time', undefined],
  ['2026-11-22T04:00:00Z', 'time', undefined],
  ['2026-1-2', 'time', undefined],
  ['2026-11-22 10:20:30', 'time', undefined],
  ['2026-11-22t  1:2:3.123+01:00', 'time', undefined],
  ['12026-11-22', 'string', undefined],
  ['-2026-11-22', 'string', undefined],
  ['2026-11-22T10:20', 'string', undefined],
  ['2026-11-22x', 'string', undefined],
  ['constructor', 'string', undefined],
])('%j is a %s', (text, kind, value) => {
  const { kind: found, value: read, text: kept } = resolvePlain(text)
  expect([found, Object.is(read, -0) ? 0 : read, kept]).toEqual([kind, value, text])
})

test('more than 80 digits are a string, without parsing a number', () => {
  expect(resolvePlain('9'.repeat(80)).kind).toBe('float')
  expect(resolvePlain('9'.repeat(81)).kind).toBe('string')
  expect(resolvePlain('9'.repeat(1_000_000)).kind).toBe('string')
})
