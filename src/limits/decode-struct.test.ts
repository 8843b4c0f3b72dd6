// Nodes of decoded resources: their paths in faults, their names and their depth.
import { expect, test } from '@jest/globals'
import { WireReader } from '../protobuf/wire-reader.ts'
import { checkDepth, keyNode, NodePaths } from './decode-struct.ts'

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

test('nodes of the names of fields are kept, but at most 100', () => {
  const names = Array.from({ length: 200 }, (_, at) => `name${String(at)}`)
  expect(names.map((name) => keyNode(name, 2).line)).toEqual(names.map(() => 2))
  const first = names.map((name) => keyNode(name))
  expect(first.map(({ text, line }) => `${text} ${String(line)}`)).toEqual(
    names.map((name) => `${name} 1`),
  )
  const kept = names.filter((name, at) => keyNode(name) === first[at])
  expect(kept).toEqual(names.slice(0, 100))
})

test('messages may be nested 100 levels deep', () => {
  const reader = new WireReader(Buffer.alloc(0), 'the message')
  checkDepth(reader, 100)
  expect(() => {
    checkDepth(reader, 101)
  }).toThrow('messages are nested more than 100 levels deep')
})
