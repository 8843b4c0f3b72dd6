// The order and the bounds of faults and warnings.
import { expect, test } from '@jest/globals'
import { countFaults, createDiagnostics, faultFields, renderFault } from './rule-fault.ts'

test('faults and warnings are in the order of the files, then by line', () => {
  const all = createDiagnostics()
  const second = all.of('b.yaml', (line) => `node${String(line)}`)
  const first = all.of('a.yaml')
  first.fault(2, 'two')
  first.warn(3, 'three')
  first.fault(1, 'one')
  second.fault(1, 'other')
  expect(all.faults().map(renderFault)).toEqual([
    'b.yaml: node1: other',
    'a.yaml:1: one',
    'a.yaml:2: two',
  ])
  expect(all.warnings().map(renderFault)).toEqual(['a.yaml:3: three'])
  expect(renderFault({ file: '', line: 1, path: '', message: 'm' })).toBe('m')
})

test('messages are truncated after 1000 characters', () => {
  const all = createDiagnostics()
  const file = all.of('f')
  file.fault(1, 'x'.repeat(1000))
  file.fault(2, 'x'.repeat(1001))
  expect(all.faults().map(({ message }) => message)).toEqual([
    'x'.repeat(1000),
    `${'x'.repeat(1000)}...`,
  ])
})

test.each([
  [1000, 0, 1000, []],
  [1001, 0, 1001, ['faults that are not listed: 1']],
  [700, 700, 1400, ['faults that are not listed: 400']],
  [5000, 1, 5001, ['faults that are not listed: 4001']],
])('of %d and %d faults in two files, 1000 are kept', (...example) => {
  const [ofOne, ofOther, count, omitted] = example
  const all = createDiagnostics()
  const one = all.of('one')
  const other = all.of('other')
  for (let line = 1; line <= ofOne; line++) one.fault(line, 'm')
  for (let line = 1; line <= ofOther; line++) other.fault(line, 'm')
  const faults = all.faults()
  expect(countFaults(faults)).toBe(count)
  expect(faults.slice(1000).map(({ message }) => message)).toEqual(omitted)
  expect(faults.slice(0, 1000).every(({ message }) => message === 'm')).toBe(true)
})

test('the log fields list at most 50 faults', () => {
  const all = createDiagnostics()
  const file = all.of('f')
  for (let line = 1; line <= 60; line++) file.fault(line, 'm')
  const fields = faultFields(all.faults())
  expect(fields.faultCount).toBe(60)
  expect(fields.faults).toEqual(Array.from({ length: 50 }, (_, at) => `f:${String(at + 1)}: m`))
})
