// The table of blocked targets: which lines of files become entries or faults, and in which steps.
import { expect, test } from '@jest/globals'
import { createBlockedTargets } from '../../links/blocked-targets.ts'
import { buildBlockedTable } from './build-blocked-table.ts'

/** The table of these files, the number of steps before it, and a check of hosts. */
function build(...contents: readonly string[]) {
  const files = contents.map((content, at) => ({ path: `${at}`, content: Buffer.from(content) }))
  const building = buildBlockedTable(files, { bytes: contents.join('').length, seed: 1 })
  let steps = 0
  let step = building.next()
  for (; step.done !== true; step = building.next()) steps++
  const { table, entries, faults } = step.value
  const { has } = createBlockedTargets(table)
  return { entries, faults, steps, has: (host: string) => has(`https://${host}/`) }
}

test.each([
  ['without a newline at its end', 'a.example\nb.example'],
  ['with a newline at its end', 'a.example\nb.example\n'],
  ['with empty lines and comments', '\n\na.example\n# c.example\n\nb.example # d.example\n\n'],
  ['with CRLF', '\r\na.example\r\nb.example\r\n'],
])('a file %s has its two entries', (_, content) => {
  const { entries, faults, has } = build(content)
  expect([entries, faults]).toEqual([2, []])
  expect(['a.example', 'b.example', 'c.example', 'd.example'].filter(has)).toEqual([
    ...['a.example', 'b.example'],
  ])
})

test('an entry that several lines and files have counts once', () => {
  expect(build('a.example\na.example\nb.example', 'a.example')).toMatchObject({ entries: 2 })
})

test('the lines of each file are numbered from 1', () => {
  const { entries, faults } = build('\ncom\na.example\nnet', '', 'org')
  const places = faults.map((fault) => fault.replace(/ .*/, ''))
  expect([entries, places]).toEqual([1, ['0:2:', '0:4:', '2:1:']])
})

test.each([
  [499, 0],
  [500, 1],
  [999, 1],
  [1500, 3],
])('%d lines are read in steps of 500 lines, of which %d are before the last', (lines, steps) => {
  const half = '#\n'.repeat(Math.floor(lines / 2))
  expect(build(half, '#\n'.repeat(Math.ceil(lines / 2))).steps).toBe(steps)
})
