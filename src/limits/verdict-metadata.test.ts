// The metadata of the rules of a call, merged for its response.
import { describe, expect, test } from '@jest/globals'
import { decided, denied } from '../../test/kit/checked-limits.ts'
import type { Json, Rule } from './rule.ts'
import { metadataOf, statusesOf } from './verdict.ts'

describe('metadataOf()', () => {
  test('merges the metadata of the rules that admit; the first of two values wins', () => {
    const checked = [
      decided({ descriptorIndex: 0, rule: { metadata: { a: 1, deep: { x: 1, y: [1] } } } }),
      decided({
        descriptorIndex: 1,
        rule: { metadata: { a: 2, b: 'b', deep: { x: 2, z: null } } },
      }),
      decided({ descriptorIndex: 2, rule: { metadata: { never: true } }, decision: denied }),
    ]
    const statuses = statusesOf(['no-rule', 'no-rule', 'no-rule'], checked)
    expect(metadataOf(checked, statuses)).toEqual({
      a: 1,
      b: 'b',
      deep: { x: 1, y: [1], z: null },
    })
  })

  test.each<[string, Json, Json]>([
    ['numbers', 1, 2],
    ['lists', [1], [2]],
    ['a number and an object', 1, { x: 2 }],
    ['an object and a number', { x: 1 }, 2],
    ['null and an object', null, { x: 2 }],
    ['an object and null', { x: 1 }, null],
    ['a list and an object', [1], { x: 2 }],
  ])('of %s the first wins', (_, first, last) => {
    const checked = [{ m: first }, undefined, { m: last }].map((metadata) =>
      decided({ rule: { metadata } }),
    )
    expect(metadataOf(checked, statusesOf(['no-rule'], checked))).toEqual({ m: first })
  })

  test('__proto__ is an ordinary key', () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": true}}') as Rule['metadata']
    const checked = [
      decided({ rule: { metadata: { a: 1 } } }),
      decided({ rule: { metadata: hostile } }),
    ]
    const merged = metadataOf(checked, statusesOf(['no-rule'], checked))
    expect(JSON.stringify(merged)).toBe('{"a":1,"__proto__":{"polluted":true}}')
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype)
  })
})
