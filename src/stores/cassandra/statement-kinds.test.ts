// Which statements the circuit breaker counts, and which are sent twice; the consistency, deadline
// and driver retries of each kind.
import { expect, test } from '@jest/globals'
import { errors, policies, types } from 'cassandra-driver'
import { kindOptions, profilesOf, SpeculativeReads, type StatementKind } from './statement-kinds.ts'

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
  expect(plan.nextExecution()).toBe(isSentTwice ? 40 : -1)
  expect(plan.nextExecution()).toBeLessThanOrEqual(0)
})

test('a batch is not sent to a second replica', () => {
  const batch = [{ query: 'SELECT writer_id FROM links WHERE short_code = ?' }]
  const plan = new SpeculativeReads().newPlan('curtail', batch) as { nextExecution: () => number }
  expect(plan.nextExecution()).toBe(-1)
})

test.each([
  ['lwt', { deadlineMs: 2400, isIdempotent: false }],
  ['serial-read', { deadlineMs: 2400, isIdempotent: false }],
  ['majority-read', { deadlineMs: 250, isIdempotent: true }],
  ['replica-read', { deadlineMs: 250, isIdempotent: true }],
  ['scan', { deadlineMs: 4400, isIdempotent: false }],
  ['new-table-scan', { deadlineMs: 4400, isIdempotent: false }],
  ['page-read', { deadlineMs: 12_000, isIdempotent: true }],
  ['plain-write', { deadlineMs: 4400, isIdempotent: true }],
  ['schema', { deadlineMs: 30_000, isIdempotent: false }],
] as const)('the options of a %s', (kind, { deadlineMs, isIdempotent }) => {
  expect(kindOptions[kind]).toMatchObject({
    options: { executionProfile: kind, isIdempotent, prepare: kind !== 'schema' },
    ...{ deadlineMs, logsRejections: kind !== 'new-table-scan' },
  })
})

const { localOne, localQuorum, localSerial, quorum, serial } = types.consistencies

test.each([
  { isGlobal: false, majority: localQuorum, settled: localSerial },
  { isGlobal: true, majority: quorum, settled: serial },
])('the consistency of each kind; across all data centers: $isGlobal', (given) => {
  const { isGlobal, majority, settled } = given
  const used = profilesOf({ isGlobal }).map(({ name, consistency, serialConsistency }) => [
    ...[name, consistency, serialConsistency],
  ])
  expect(used).toEqual([
    ['lwt', majority, settled],
    ['serial-read', settled, settled],
    ['majority-read', majority, undefined],
    ['replica-read', localOne, undefined],
    ['scan', majority, undefined],
    ['new-table-scan', majority, undefined],
    ['page-read', majority, undefined],
    ['plain-write', majority, undefined],
    ['schema', majority, settled],
  ])
})

test('the timeout of an attempt of each kind', () => {
  expect(
    profilesOf({ isGlobal: false }).map(({ name, readTimeout }) => [name, readTimeout]),
  ).toEqual([
    ['lwt', 2200],
    ['serial-read', 2200],
    ['majority-read', 5500],
    ['replica-read', 5500],
    ['scan', 2200],
    ['new-table-scan', 2200],
    ['page-read', 10_500],
    ['plain-write', 2200],
    ['schema', 30_000],
  ])
})

const driverDefault = new policies.retry.RetryPolicy()
const info = {} as unknown as policies.retry.OperationInfo

/** The decision about a failed attempt, by kind. */
function decisions(error: Error) {
  return Object.fromEntries(
    profilesOf({ isGlobal: false }).map(({ name, retry }) => [
      name,
      retry?.onRequestError(info, localQuorum, error),
    ]),
  )
}

test('the driver retries no claim, serial read, schema change or timeout', () => {
  const rethrown = driverDefault.rethrowResult()
  const retried = driverDefault.onRequestError(info, localQuorum, new Error())
  const reads = { 'majority-read': retried, 'replica-read': retried, 'page-read': retried }
  const scans = { scan: retried, 'new-table-scan': retried }
  const once = { lwt: rethrown, 'serial-read': rethrown, schema: rethrown }
  const lost = decisions(new Error('Socket was closed'))
  expect(lost).toEqual({ ...once, ...reads, ...scans, 'plain-write': retried })
  const timedOut = decisions(new errors.OperationTimedOutError('no reply'))
  expect(Object.values(timedOut)).toEqual(Array.from({ length: 9 }, () => rethrown))
})
