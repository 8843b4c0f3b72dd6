// The bounds of the hits that a limiter reports, and malformed reports.
import { expect, test } from '@jest/globals'
import type { Rule } from '../../limits/rule.ts'
import { AuditCounts, parseAuditCounts } from './audit-counts.ts'

test('a limiter counts at most 1,000 rules between two reports', () => {
  const counts = new AuditCounts()
  const rules = Array.from({ length: 1001 }, (_, identity) => ({ identity: `${identity}` }) as Rule)
  for (const rule of [...rules, ...rules]) counts.count(rule, Number.MAX_SAFE_INTEGER)
  const names = counts.take()
  expect([names.length, names.join('').length + 2 * 1000 < 64 * 1024]).toEqual([1000, true])
  expect(parseAuditCounts(names)?.[999]?.hits).toBe(Number.MAX_SAFE_INTEGER)
  expect(counts.take()).toEqual([])
})

const RULE = 'a'.repeat(22)
test.each([
  ['more rules', Array.from({ length: 1001 }, () => `${RULE}=1`)],
  ['no hits', [`${RULE}=0`]],
  ['too many hits', [`${RULE}=9007199254740992`]],
  ['a negative number', [`${RULE}=-1`]],
  ['another identifier', ['rule=1']],
  ['an empty name', ['']],
])('a report with %s is malformed', (_name, names) => {
  expect(parseAuditCounts(names)).toBeUndefined()
})
