// The bounds of the hits that a limiter reports, and malformed reports.
import { expect, test } from '@jest/globals'
import type { Rule } from '../../limits/rule.ts'
import { AuditCounts, parseAuditCounts } from './audit-counts.ts'

const ruleOf = (identity: number) => ({ identity: `${identity}` }) as Rule

test('a limiter reports at most 1,000 rules at a time, and counts at most 10,000', () => {
  const counts = new AuditCounts()
  const rules = Array.from({ length: 10_001 }, (_, at) => ruleOf(at))
  for (const rule of [...rules, ...rules]) counts.count(rule, Number.MAX_SAFE_INTEGER)
  const reports = Array.from({ length: 11 }, () => counts.take())
  expect(reports.map(({ length }) => length)).toEqual([...Array<number>(10).fill(1000), 0])
  expect(new Set(reports.flat()).size).toBe(10_000)
  const names = reports[0] ?? []
  expect(names.join('').length + 2 * 1000).toBeLessThan(64 * 1024)
  expect(parseAuditCounts(names)?.[999]?.hits).toBe(Number.MAX_SAFE_INTEGER)
})

test('a rule in several versions has one count', () => {
  const counts = new AuditCounts()
  for (let version = 0; version < 3; version++) counts.count(ruleOf(1), 2)
  expect(parseAuditCounts(counts.take())).toMatchObject([{ hits: 6 }])
})

const RULE = 'a'.repeat(22)
test.each([
  ['more than 1,000 rules', Array.from({ length: 1001 }, () => `${RULE}=1`)],
  ['no hits', [`${RULE}=0`]],
  ['too many hits', [`${RULE}=9007199254740992`]],
  ['a negative number', [`${RULE}=-1`]],
  ['another identifier', ['rule=1']],
  ['an empty name', ['']],
])('a report with %s is malformed', (_name, names) => {
  expect(parseAuditCounts(names)).toBeUndefined()
})
