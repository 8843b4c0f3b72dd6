// The times at which the statuses of policies are compared, with simulated time.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { scheduleReports } from './schedule-reports.ts'

test('a recheck that is due is not lost if another one is requested before it runs', async () => {
  const scheduler = createFakeScheduler()
  const changes = [1000, 1000 + 1e6]
  let comparisons = 0
  const schedule = scheduleReports(
    { scheduler, enqueue: () => undefined },
    {
      outdated: () => {
        comparisons++
        return []
      },
      nextChangeMs: () => changes.find((atMs) => atMs > scheduler.nowMs()),
    },
  )
  // A limiter's report is handled in the same turn as the due recheck, before it.
  scheduler.after(1000, schedule.recheckLater)
  schedule.recheckLater()
  await scheduler.advance(10_000)
  expect(comparisons).toBe(1)
})
