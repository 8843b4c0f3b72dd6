// The times at which the statuses of policies are compared, with simulated time.
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import { scheduleReports } from './schedule-reports.ts'

let scheduler: FakeScheduler
let metrics: Metrics
let logged: unknown[]

beforeEach(() => {
  scheduler = createFakeScheduler()
  metrics = createMetrics()
  logged = []
})
const start = (
  reports: Parameters<typeof scheduleReports>[1],
  enqueue: (key: string, ms: number) => void = () => undefined,
) => {
  const log = { error: (_fields: object, msg?: string) => logged.push(msg) }
  return scheduleReports({ scheduler, metrics, log, enqueue }, reports)
}

test('a recheck that is due is not lost if another one is requested before it runs', async () => {
  const changes = [1000, 1000 + 1e6]
  let comparisons = 0
  const schedule = start({
    outdated: () => {
      comparisons++
      return []
    },
    nextChangeMs: () => changes.find((atMs) => atMs > scheduler.nowMs()),
  })
  // A limiter's report is handled in the same turn as the due recheck, before it.
  scheduler.after(1000, schedule.recheckLater)
  schedule.recheckLater()
  await scheduler.advance(10_000)
  expect(comparisons).toBe(1)
})

test('a comparison that throws is counted and logged, and the next one runs', async () => {
  let isBroken = true
  const enqueued: string[] = []
  const outdated = () => {
    if (isBroken) throw new Error('defect')
    return ['n/p']
  }
  const schedule = start({ outdated, nextChangeMs: () => undefined }, (key) => enqueued.push(key))
  schedule.trigger()
  await scheduler.advance(1000)
  const { values } = await metrics.backgroundFailures.get()
  expect(values).toMatchObject([{ value: 1, labels: { task: 'report-policies' } }])
  expect(logged).toEqual(['statuses of policies not compared until the next change'])
  isBroken = false
  schedule.trigger()
  await scheduler.advance(1000)
  expect(enqueued).toEqual(['n/p'])
})
