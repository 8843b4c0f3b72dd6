// The paths of nodes in the faults of decoded resources.
import { expect, test } from '@jest/globals'
import { NodePaths } from './decode-struct.ts'

const ROOT = 1

test.each<[readonly (string | number)[], string]>([
  [[], ''],
  [['descriptors'], 'descriptors'],
  [['descriptors', 3, 'rate_limit'], 'descriptors[3].rate_limit'],
  [[0, 'a', 1], '[0].a[1]'],
  [['metadata', 'curtail.dev', 'x'], 'metadata["curtail.dev"].x'],
  [['a', ''], 'a[""]'],
  [['a', '1b'], 'a["1b"]'],
  [['a', '"'], String.raw`a["\""]`],
  [['a', 'b'.repeat(100)], `a.${'b'.repeat(100)}`],
  [['a', 'b'.repeat(101)], `a["${'b'.repeat(100)}"]`], // at most 100 characters
])('the path of %j', (steps, path) => {
  const paths = new NodePaths()
  const node = steps.reduce<number>((parent, step) => paths.add(parent, step), ROOT)
  paths.add(ROOT, 'other')
  expect(paths.render(node)).toBe(path)
})
