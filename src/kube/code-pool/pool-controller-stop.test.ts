// The stop of the controller while reconciles and writes of events take long. Time is simulated.
import { afterEach, expect, jest, test } from '@jest/globals'
import { leadPools, poolOf } from '../../../test/kit/kube/pool-changes.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { untilAborted } from '../scheduler.ts'

type Call = Parameters<KubeApi['call']>[0]

afterEach(() => {
  jest.useRealTimers()
})

/** A leader that reads a Job, which hangs until the reconcile is aborted. */
async function leadSlowly() {
  const aborted: boolean[] = []
  const respond = async ({ path, signal = AbortSignal.abort() }: Call) => {
    if (path.endsWith('/jobs')) return { items: [], metadata: { resourceVersion: '1' } }
    await untilAborted(signal)
    aborted.push(true)
    throw new KubeError('aborted', { status: 0, reason: 'Unreachable' })
  }
  const pool = poolOf('p', {}, { status: { refills: 1 } })
  return { ...(await leadPools({ pools: [pool], respond })), aborted }
}

test('a stop waits 1 s for running reconciles, then aborts them', async () => {
  const { scheduler, stopping, leading, aborted, warnings, metrics } = await leadSlowly()
  let isStopped = false
  void leading.then(() => (isStopped = true))
  stopping.abort()
  await scheduler.advance(999)
  expect([aborted, isStopped]).toEqual([[], false])
  await scheduler.advance(1)
  expect([aborted, isStopped, warnings]).toEqual([[true], true, []])
  const { values } = await metrics.reconcileErrors.get()
  expect(values.reduce((sum, { value }) => sum + value, 0)).toBe(0)
})

test('a stop abandons a reconcile that does not return 1 s after it is aborted', async () => {
  const ownPool = () => new Promise<never>(() => undefined)
  const { scheduler, stopping, leading, warnings } = await leadPools({ ownPool })
  stopping.abort()
  await scheduler.advance(1999)
  expect(warnings).toEqual([])
  await scheduler.advance(1)
  expect(warnings).toEqual([expect.stringContaining('abandoned')])
  await leading
})

test('a stop starts no further reconcile', async () => {
  const { stop, controller, take } = await leadPools()
  await stop()
  controller.onPoolsChanged('all')
  expect(await take(60_000)).toEqual([])
})

test('a stop waits 500 ms for pending events', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'setImmediate'] })
  const flush = () => new Promise<never>(() => undefined)
  const events = { emit: () => undefined, flush }
  const { scheduler, stopping, leading, warnings } = await leadPools({ events })
  stopping.abort()
  await scheduler.advance(0)
  await jest.advanceTimersByTimeAsync(499)
  expect(warnings).toEqual([])
  await jest.advanceTimersByTimeAsync(1)
  await leading
  expect(warnings).toEqual(['events not written before the stop'])
})
