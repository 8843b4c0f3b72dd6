// Wildcards in rule values, compared with equivalent regular expressions.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { matchesSegments, splitPattern } from './wildcard.ts'

const matches = (pattern: string, value: string) => matchesSegments(splitPattern(pattern), value)

test.each([
  ['foo*', ['foo', 'foo1', 'foofoo'], ['fo', 'xfoo', '']],
  ['*', ['', 'anything'], []],
  ['*b', ['b', 'ab', 'bb'], ['ba', '']],
  ['bar*b', ['barb', 'barab', 'bar123b'], ['bar', 'bara', 'xbarb', 'ba']],
  ['ab*ba', ['abba', 'ab.ba'], ['aba']],
  ['foo*bar*baz', ['foobarbaz', 'foo1bar2baz', 'foobarbarbaz'], ['foo1baz', 'bar1baz', 'foobaz']],
  ['a*b*b', ['abb', 'a.b.b'], ['ab']],
  ['**', ['', 'x'], []],
  ['a**b', ['ab', 'axb'], ['a', 'b']],
])('%j matches the expected values', (pattern, matching, others) => {
  expect(matching.filter((value) => !matches(pattern, value))).toEqual([])
  expect(others.filter((value) => matches(pattern, value))).toEqual([])
})

/** A naive matcher: each `*` is `.*` of a regular expression. */
function naive(pattern: string, value: string): boolean {
  const segments = pattern
    .split('*')
    .map((segment) => segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${segments.join('[^]*')}$`, 'u').test(value)
}

test('matches the same values as a regular expression', () => {
  const letters = fc.constantFrom('a', 'b', '.', '\n')
  const patterns = fc
    .array(fc.oneof(letters, fc.constant('*')), { maxLength: 8 })
    .map((all) => all.join(''))
    .filter((pattern) => pattern.includes('*'))
  const values = fc.array(letters, { maxLength: 10 }).map((all) => all.join(''))
  fc.assert(
    fc.property(patterns, values, (pattern, value) => {
      expect(matches(pattern, value)).toBe(naive(pattern, value))
    }),
    { numRuns: 3000 },
  )
})

test('a long hostile value is matched in bounded CPU time', () => {
  const pattern = splitPattern(`${'*a'.repeat(2000)}*b`)
  const before = process.threadCpuUsage()
  expect(matchesSegments(pattern, 'a'.repeat(100_000))).toBe(false)
  expect(matchesSegments(splitPattern('a*ab*c*'), 'a'.repeat(100_000))).toBe(false)
  expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(500)
})
