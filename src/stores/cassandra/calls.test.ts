// Which statements a close waits for: those whose callers still wait for a result. Which failures
// are logged.
import type { Client } from 'cassandra-driver'
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createCalls } from './calls.ts'

/** Calls on a client that completes a statement when the test calls the next of `complete`. */
function open() {
  const complete: (() => void)[] = []
  const execute = () =>
    new Promise((resolve) => {
      complete.push(() => {
        resolve({ rows: [], info: {} })
      })
    })
  return { ...openWith(execute), complete }
}

/** Calls on a client with this function, and the warnings that they log. */
function openWith(execute: () => Promise<unknown>) {
  const warnings: object[] = []
  const majority = {
    isPresent: () => true,
    noteSuccess: () => undefined,
    noteFailure: () => undefined,
  }
  const calls = createCalls({
    client: { execute } as unknown as Client,
    metrics: createMetrics(),
    log: { warn: (fields: object) => warnings.push(fields) },
    watch: { isConnected: () => true, majority: majority as never },
  })
  return { calls, warnings }
}

test('a close waits for statements in flight, except those that have timed out', async () => {
  const { calls, complete } = open()
  await expect(calls.run('majority-read', 'SELECT')).rejects.toMatchObject({ outcome: 'unknown' })
  await calls.drained()
  const statement = calls.run('majority-read', 'SELECT')
  const drained: string[] = []
  const waiting = calls.drained().then(() => drained.push('drained'))
  complete[0]?.() // of the statement that has timed out
  await new Promise((resolve) => setImmediate(resolve))
  expect(drained).toEqual([])
  complete[1]?.()
  await statement
  await waiting
})

test.each([
  { kind: 'scan', code: 0x2200, logged: 1, fault: 'rejected the statement' },
  { kind: 'scan', code: 0x0000, logged: 1, fault: 'did not complete the statement' },
  // The table does not exist.
  { kind: 'new-table-scan', code: 0x2200, logged: 0, fault: 'rejected the statement' },
  { kind: 'new-table-scan', code: 0x0000, logged: 0, fault: 'did not complete the statement' },
  { kind: 'new-table-scan', code: 0x1000, logged: 1, fault: 'did not complete the statement' },
] as const)('the failure $code of a $kind is logged $logged times', async (given) => {
  const { kind, code, logged, fault } = given
  const message = 'java.lang.IllegalArgumentException: Unknown CF 8f407497'
  const cause = Object.assign(new Error(message), { name: 'ResponseError', code })
  const { calls, warnings } = openWith(() => Promise.reject(cause))
  await expect(calls.run(kind, 'SELECT')).rejects.toMatchObject({
    name: 'StoreError',
    message: `Cassandra ${fault} (${kind})`,
    cause,
  })
  expect(warnings).toHaveLength(logged)
})
