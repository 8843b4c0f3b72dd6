// Which statements a close waits for: those whose callers still wait for a result.
import type { Client } from 'cassandra-driver'
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createCalls } from './calls.ts'

/** Calls on a client that completes a statement when the test calls the next of `complete`. */
function open() {
  const complete: (() => void)[] = []
  const client = {
    execute: () =>
      new Promise((resolve) => {
        complete.push(() => {
          resolve({ rows: [], info: {} })
        })
      }),
  }
  const majority = {
    isPresent: () => true,
    noteSuccess: () => undefined,
    noteFailure: () => undefined,
  }
  const calls = createCalls({
    client: client as unknown as Client,
    metrics: createMetrics(),
    log: { warn: () => undefined },
    watch: { isConnected: () => true, majority: majority as never },
  })
  return { calls, complete }
}

test('a statement that has timed out is not waited for, and one in flight is', async () => {
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
