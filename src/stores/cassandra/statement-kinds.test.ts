// Which statements the circuit breaker counts, and which are sent twice.
import { expect, test } from '@jest/globals'
import { SpeculativeReads, type StatementKind, kindOptions } from './statement-kinds.ts'

test('a page of a table neither opens the circuit breaker nor is blocked by it', () => {
  const counted = (Object.keys(kindOptions) as StatementKind[]).filter(
    (kind) => kindOptions[kind].isCountedByBreaker,
  )
  expect(counted).toEqual(['lwt', 'serial-read', 'majority-read', 'scan', 'plain-write'])
})

test.each([
  ['SELECT writer_id FROM links WHERE short_code = ?', true],
  ['SELECT writer_id,\n  disabled_at FROM links\n  WHERE short_code = ?', true],
  ['SELECT writer_id FROM links LIMIT ?', false],
  ['SELECT writer_id FROM links\n  WHERE token(short_code) > token(?) LIMIT ?', false],
  ['INSERT INTO links (short_code) VALUES (?)', false],
])('%s is sent to a second replica if it is slow: %s', (cql, isSentTwice) => {
  const plan = new SpeculativeReads().newPlan('curtail', cql) as { nextExecution: () => number }
  expect(plan.nextExecution() > 0).toBe(isSentTwice)
})
