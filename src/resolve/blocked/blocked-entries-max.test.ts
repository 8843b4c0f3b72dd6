// The maximum number of entries, in a file of its own because it takes seconds.
import { expect, test } from '@jest/globals'
import { buildBlockedTable, ENTRIES_MAX } from './build-blocked-table.ts'

test('more than the maximum number of entries are an error', () => {
  const entriesPerFile = ENTRIES_MAX / 40
  let count = 0
  function* files() {
    for (; ; count++) {
      const lines = Array.from({ length: entriesPerFile }, (_, i) => `${i}.h${count}.io\n`)
      yield { path: 'f', content: Buffer.from(lines.join('')) }
    }
  }
  const building = buildBlockedTable(files(), { bytes: 20 * ENTRIES_MAX, seed: 1 })
  expect(() => [...building]).toThrow(`the files have more than ${ENTRIES_MAX} entries`)
  expect(count).toBe(40) // the entries of 40 files are allowed, one entry of the next is not
}, 60_000)
