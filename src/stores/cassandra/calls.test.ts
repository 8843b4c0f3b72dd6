// Statements on a fake of the driver's client: the circuit breaker, the deadline of each kind, the
// statements that a close waits for, and which failures are counted and logged.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { type Client, errors, type QueryOptions } from 'cassandra-driver'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import { createCalls, rowsOf, TIMED_OUT_MAX } from './calls.ts'
import type { MajorityWatch } from './majority.ts'
import { kindOptions, type StatementKind } from './statement-kinds.ts'

/** A statement that the client has received, and the functions that complete it. */
interface Sent {
  readonly cql: string
  readonly values: readonly unknown[]
  readonly options: QueryOptions
  readonly succeed: (result: unknown) => void
  readonly fail: (error: unknown) => void
}

const COUNTED = ['lwt', 'serial-read', 'majority-read', 'scan', 'plain-write'] as const
const UNCOUNTED = ['replica-read', 'new-table-scan', 'page-read', 'schema'] as const
const KINDS: readonly StatementKind[] = [...COUNTED, ...UNCOUNTED]
const RESULT = { rows: [], info: {} }

let sent: Sent[]
/** What the circuit breaker was notified of. */
let notes: unknown[]
let warnings: unknown[]
let isConnected: boolean
let isPresent: boolean | undefined
let metrics: Metrics
let calls: ReturnType<typeof createCalls>

const client = {
  execute: (cql: string, values: readonly unknown[], options: QueryOptions) =>
    new Promise((succeed, fail) => {
      sent.push({ cql, values, options, succeed, fail })
    }),
}
const majority: MajorityWatch = {
  isPresent: () => isPresent,
  noteSuccess: (nowMs) => notes.push(['success', nowMs]),
  noteFailure: (sentMs) => notes.push(['failure', sentMs]),
  suspect: () => notes.push('suspect'),
  tick: () => notes.push('tick'),
  reset: () => notes.push('reset'),
  stop: () => Promise.resolve(),
}

beforeEach(async () => {
  jest.useFakeTimers()
  await jest.advanceTimersByTimeAsync(5000) // no time of a test is zero
  sent = []
  notes = []
  warnings = []
  isConnected = true
  isPresent = true
  metrics = createMetrics()
  calls = createCalls({
    ...{ client: client as unknown as Client, metrics },
    log: { warn: (...args: unknown[]) => warnings.push(args) },
    watch: { isConnected: () => isConnected, majority },
  })
})
afterEach(() => {
  jest.useRealTimers()
})

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
const response = (code: number, message = 'rejected') => new errors.ResponseError(code, message)
/** Runs a statement; the result has its value or its error once it is settled. */
function run(kind: StatementKind) {
  const result: { value?: unknown; error?: unknown } = {}
  calls.run(kind, 'SELECT').then(
    (value) => (result.value = value),
    (error: unknown) => (result.error = error),
  )
  return result
}
/** Each observed series of the metric, as `[statement, result, seconds, count]`. */
async function observed() {
  const { values } = await metrics.cassandraCallSeconds.get()
  return values.flatMap(({ labels, value, metricName }, i) => {
    if (!metricName.endsWith('_count') || value === 0) return []
    return [[labels.statement, labels.result, values[i - 1]?.value, value]] // the sum is before it
  })
}

test('a statement is sent, and its result is returned, as it is', async () => {
  const results = [calls.run('lwt', 'INSERT', ['a', 1]), calls.run('scan', 'SELECT')]
  expect(sent).toMatchObject([
    { cql: 'INSERT', values: ['a', 1], options: kindOptions.lwt.options },
    { cql: 'SELECT', values: [], options: kindOptions.scan.options },
  ])
  const result = { rows: [{ a: 1 }], info: {} }
  for (const statement of sent) statement.succeed(result)
  expect(await Promise.all(results)).toEqual([result, result])
  expect([rowsOf(result), rowsOf({ info: {} })]).toEqual([[{ a: 1 }], []])
})

test('without a connection every kind is rejected before it is sent', async () => {
  isConnected = false
  const error = { name: 'StoreError', outcome: 'not-done', message: 'Cassandra is not connected' }
  for (const kind of KINDS) await expect(calls.run(kind, 'SELECT')).rejects.toMatchObject(error)
  expect(sent).toHaveLength(0)
  await calls.drained()
})

test('without a majority only the kinds that the breaker counts are rejected', async () => {
  isPresent = false
  const message = expect.stringContaining('no majority of replicas responds')
  const error = { name: 'StoreError', outcome: 'not-done', message }
  for (const kind of COUNTED) await expect(calls.run(kind, 'SELECT')).rejects.toMatchObject(error)
  expect(sent).toHaveLength(0)
  UNCOUNTED.map(run)
  expect(sent).toHaveLength(UNCOUNTED.length)
  isPresent = undefined // not known yet
  KINDS.map(run)
  expect(sent).toHaveLength(UNCOUNTED.length + KINDS.length)
})

test.each([
  { kind: 'lwt', deadlineMs: 2400, isNoted: true },
  { kind: 'serial-read', deadlineMs: 2400, isNoted: true },
  { kind: 'majority-read', deadlineMs: 250, isNoted: false }, // too short to indicate it
  { kind: 'replica-read', deadlineMs: 250, isNoted: false },
  { kind: 'scan', deadlineMs: 4400, isNoted: true },
  { kind: 'new-table-scan', deadlineMs: 4400, isNoted: false },
  { kind: 'page-read', deadlineMs: 12_000, isNoted: false },
  { kind: 'plain-write', deadlineMs: 4400, isNoted: true },
  { kind: 'schema', deadlineMs: 30_000, isNoted: false },
] as const)('a $kind times out after $deadlineMs ms, which is noted: $isNoted', async (given) => {
  const { kind, deadlineMs, isNoted } = given
  const startedMs = performance.now()
  const result = run(kind)
  await pass(deadlineMs - 1)
  expect([result, notes]).toEqual([{}, []])
  await pass(3)
  expect(result.error).toMatchObject({ name: 'StoreError', outcome: 'unknown' })
  expect(notes).toEqual(isNoted ? [['failure', startedMs]] : [])
  const seconds = expect.closeTo(deadlineMs / 1000, 2)
  expect(await observed()).toEqual([[kind, 'unknown', seconds, 1]])
  expect(warnings).toHaveLength(1)
})

test('a success or failure after the timeout is noted, and changes nothing else', async () => {
  const startedMs = performance.now()
  const results = [run('majority-read'), run('majority-read'), run('replica-read')]
  await pass(300)
  expect(results).toMatchObject([{ error: {} }, { error: {} }, { error: {} }])
  const before = [...(await observed()), ...warnings]
  await pass(100)
  const pending = run('majority-read')
  const drained = jest.fn()
  void calls.drained().then(drained)
  sent[0]?.succeed(RESULT)
  sent[1]?.fail(new Error('closed'))
  sent[2]?.fail(new Error('closed'))
  await pass(0)
  expect(notes).toEqual([
    ['success', startedMs + 400],
    ['failure', startedMs],
  ])
  expect([...(await observed()), ...warnings]).toEqual(before)
  expect([pending, drained.mock.calls]).toEqual([{}, []]) // a close waits for the other one
})

test('statements that timed out are bounded by kind until their responses arrive', async () => {
  const isSent = () => {
    const before = sent.length
    run('replica-read')
    return sent.length > before
  }
  for (let count = 1; count < TIMED_OUT_MAX; count++) run('replica-read')
  await pass(300)
  expect(isSent()).toBe(true)
  await pass(300)
  const message = expect.stringContaining('too many statements timed out')
  const error = { name: 'StoreError', outcome: 'not-done', message }
  await expect(calls.run('replica-read', 'SELECT')).rejects.toMatchObject(error)
  run('majority-read')
  expect(sent).toHaveLength(TIMED_OUT_MAX + 1)
  sent[0]?.succeed(RESULT)
  await pass(0)
  expect(isSent()).toBe(true)
  await pass(300)
  expect(isSent()).toBe(false)
  sent[1]?.fail(new Error('closed'))
  await pass(0)
  expect(isSent()).toBe(true)
  sent.at(-1)?.succeed(RESULT) // completed within its deadline: the bound does not change
  await pass(0)
  expect(isSent()).toBe(true)
  await pass(300)
  expect(isSent()).toBe(false)
})

test.each(KINDS)('whether results of a %s are noted depends on the kind', async (kind) => {
  const startedMs = performance.now()
  const results = [run(kind), run(kind), run(kind), run(kind)]
  await pass(100)
  const defect = new TypeError('not a uuid')
  sent[0]?.succeed(RESULT)
  sent[1]?.fail(new errors.NoHostAvailableError({}))
  sent[2]?.fail(response(0x1100))
  sent[3]?.fail(defect)
  await pass(0)
  const isCounted = COUNTED.some((counted) => counted === kind)
  const failure = ['failure', startedMs]
  expect(notes).toEqual(isCounted ? [['success', startedMs + 100], failure, failure] : [])
  expect(results).toMatchObject([
    { value: RESULT },
    { error: { name: 'StoreError', outcome: 'not-done' } },
    { error: { name: 'StoreError', outcome: 'unknown' } },
    {},
  ])
  expect(results[3]?.error).toBe(defect)
  expect(await observed()).toEqual(
    ['ok', 'not-done', 'unknown', 'defect'].map((name) => [kind, name, expect.closeTo(0.1), 1]),
  )
})

test('the breaker can time out every statement in flight that it counts', async () => {
  const startedMs = performance.now()
  const counted = COUNTED.map(run)
  const others = UNCOUNTED.map(run)
  await pass(100)
  calls.failPending()
  await pass(0)
  const error = { outcome: 'unknown', cause: { message: 'no response after 100 ms' } }
  expect(counted).toMatchObject(COUNTED.map(() => ({ error })))
  expect(notes).toEqual(Array(4).fill(['failure', startedMs])) // all but the majority read
  expect(others).toEqual([{}, {}, {}, {}])
  for (const statement of sent) statement.succeed(RESULT)
  await pass(0)
  expect(others).toEqual(Array(4).fill({ value: RESULT }))
  await calls.drained()
})

test('a close waits for statements in flight, except those that have timed out', async () => {
  const drained = jest.fn()
  const statements = [run('replica-read'), run('lwt'), run('lwt'), run('lwt')]
  void calls.drained().then(drained)
  await pass(300)
  expect(statements.map(({ error }) => error !== undefined)).toEqual([true, false, false, false])
  sent[1]?.succeed(RESULT)
  sent[2]?.fail(new TypeError('a defect'))
  await pass(0)
  expect(drained.mock.calls).toHaveLength(0)
  sent[3]?.fail(response(0x1100))
  await pass(0)
  expect(drained.mock.calls).toHaveLength(1)
  await calls.drained()
})

test.each([
  { kind: 'scan', code: 0x2200, logged: 1, fault: 'rejected the statement' },
  { kind: 'scan', code: 0x0000, logged: 1, fault: 'did not complete the statement' },
  // The table does not exist, or the role must not read it.
  { kind: 'new-table-scan', code: 0x2200, logged: 0, fault: 'rejected the statement' },
  { kind: 'new-table-scan', code: 0x2100, logged: 0, fault: 'rejected the statement' },
  { kind: 'new-table-scan', code: 0x0000, logged: 0, fault: 'did not complete the statement' },
  { kind: 'new-table-scan', code: 0x1000, logged: 1, fault: 'did not complete the statement' },
] as const)('the failure $code of a $kind is logged $logged times', async (given) => {
  const { kind, code, logged, fault } = given
  const cause = response(code, 'java.lang.IllegalArgumentException: Unknown CF 8f407497')
  const result = calls.run(kind, 'SELECT')
  sent[0]?.fail(cause)
  const message = `Cassandra ${fault} (${kind})`
  await expect(result).rejects.toMatchObject({ name: 'StoreError', message, cause })
  expect(warnings).toHaveLength(logged)
})

test('one failure of all kinds is logged per 10 s, with the number of the others', async () => {
  const failAs = async (kind: StatementKind, err: Error) => {
    run(kind)
    sent.at(-1)?.fail(err)
    await pass(0)
  }
  const [first, other] = [response(0x2200), response(0x1100)]
  await failAs('scan', new TypeError('a defect'))
  expect(warnings).toEqual([])
  await failAs('scan', first)
  const message = 'Cassandra statement failed'
  const logged = [[{ kind: 'scan', outcome: 'not-done', err: first, unlogged: 0 }, message]]
  expect(warnings).toEqual(logged)
  await failAs('scan', other)
  await failAs('new-table-scan', first) // never logged, nor counted
  await pass(9999)
  await failAs('lwt', first)
  expect(warnings).toEqual(logged)
  await pass(1)
  await failAs('lwt', other)
  logged.push([{ kind: 'lwt', outcome: 'unknown', err: other, unlogged: 2 }, message])
  expect(warnings).toEqual(logged)
  await pass(10_000)
  await failAs('lwt', first)
  logged.push([{ kind: 'lwt', outcome: 'not-done', err: first, unlogged: 0 }, message])
  expect(warnings).toEqual(logged)
})
