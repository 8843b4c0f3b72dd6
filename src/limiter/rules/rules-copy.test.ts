// A copy is written in the background, one version at a time; versions that the newest one replaces
// are not written.
import { expect, test } from '@jest/globals'
import { writeInBackground } from './rules-copy.ts'

test('one write at a time, and only the newest waits', async () => {
  const writes: string[] = []
  const complete: (() => void)[] = []
  const copy = writeInBackground<string>({
    read: () => Promise.resolve(undefined),
    write: (rules) =>
      new Promise((resolve) => {
        writes.push(rules)
        complete.push(resolve)
      }),
  })
  await copy.settle()
  for (const rules of ['v1', 'v2', 'v3']) copy.write(rules)
  expect(writes).toEqual(['v1'])
  complete[0]?.()
  await new Promise(setImmediate)
  expect(writes).toEqual(['v1', 'v3'])
  complete[1]?.()
  await copy.settle()
  copy.write('v4')
  complete[2]?.()
  await copy.settle()
  expect(writes).toEqual(['v1', 'v3', 'v4'])
})
