// Descriptors as operators write them.
import { expect, test } from '@jest/globals'
import { ENTRIES_MAX } from './descriptor.ts'
import { parseDescriptor } from './parse-descriptor.ts'

test.each([
  ['a=b', [{ key: 'a', value: 'b' }]],
  [
    'a=b,c=d',
    [
      { key: 'a', value: 'b' },
      { key: 'c', value: 'd' },
    ],
  ],
  ['a=', [{ key: 'a', value: '' }]],
  ['a=b=c', [{ key: 'a', value: 'b=c' }]],
])('%s', (source, entries) => {
  expect(parseDescriptor(source)).toEqual({ entries })
})

test.each(['', 'a', '=b', 'a=b,', ',a=b', 'a=b,c', 'a=b,=d'])('rejects %j', (source) => {
  expect(parseDescriptor(source)).toBeUndefined()
})

test('accepts as many entries as a descriptor may have, and rejects one more', () => {
  const source = Array.from({ length: ENTRIES_MAX }, (_, n) => `k${n}=v`).join()
  expect(parseDescriptor(source)?.entries).toHaveLength(ENTRIES_MAX)
  expect(parseDescriptor(`${source},k=v`)).toBeUndefined()
})
