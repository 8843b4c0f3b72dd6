// Hash slots as Redis Cluster computes them: values from its specification and CLUSTER KEYSLOT.
import { expect, test } from '@jest/globals'
import { keySlot } from './key-slot.ts'

test.each([
  ['123456789', 0x31c3],
  ['foo', 12_182],
  ['', 0],
  ['{user1000}.following', 3443],
  ['{user1000}.followers', 3443],
  ['foo{}{bar}', 8363],
  ['foo{{bar}}zap', 4015],
  ['foo{bar}{zap}', 5061],
  ['héé', 14_144],
])('%s', (key, slot) => {
  expect(keySlot(key)).toBe(slot)
})

test.each([
  ['a}b', 'b'],
  ['a{b', 'b'],
  ['{b', 'b'],
  ['}a{b}', 'a'],
  ['a{}b', 'b'],
  ['{}', ''],
])('%s has no hash tag, or not this one', (key, tag) => {
  expect(keySlot(key)).not.toBe(keySlot(tag))
})
