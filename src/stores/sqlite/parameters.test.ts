// Values of parameters are sent in the order in which the SQL of an operation names them.
import { expect, test } from '@jest/globals'
import { withNumberedParameters, writeOf } from './parameters.ts'

test('a write has the values in the order of the names, each once, without others', () => {
  const values = { seq: 7, pool: 'p', codes: 'abc', other: 1 }
  expect(writeOf('putBlock', values)).toEqual(['putBlock', 'p', 7, 'abc'])
  expect(writeOf('readBlock', values)).toEqual(['readBlock', 'p', 7])
})

test('a missing value is an error', () => {
  expect(() => writeOf('readBlock', { pool: 'p' })).toThrow('readBlock needs the parameter seq')
})

test('both statements of an operation number the same parameters alike', () => {
  const write = 'UPDATE t SET a = :a WHERE long_name = :long_name'
  const read = 'SELECT :b, :a FROM t WHERE a > :a'
  const numbered = (sql: string) => withNumberedParameters({ write, read }, sql)
  expect(numbered(write)).toEqual({
    ...{ sql: 'UPDATE t SET a = ?1 WHERE long_name = ?2', values: 2 },
  })
  expect(numbered(read)).toEqual({ sql: 'SELECT ?3, ?1 FROM t WHERE a > ?1', values: 3 })
  expect(numbered('SELECT 1')).toEqual({ sql: 'SELECT 1', values: 0 })
  expect(withNumberedParameters({ read }, read).sql).toBe('SELECT ?1, ?2 FROM t WHERE a > ?2')
})
